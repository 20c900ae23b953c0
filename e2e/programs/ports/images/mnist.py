import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.conv2 = nn.Conv2d(4, 8, 3)
        self.fc1 = nn.Linear(32, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        features = F.relu(self.conv2(F.relu(self.conv1(x))))
        hidden = F.relu(self.fc1(torch.flatten(F.max_pool2d(features, 2), 1)))
        return F.log_softmax(self.fc2(hidden), dim=1)


def program():
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1)
    schedule = StepLR(optimizer, step_size=1, gamma=0.9)

    def step(images, labels):
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step, schedule.step
