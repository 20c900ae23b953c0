import torch
from torch import nn
from torch.nn import functional as F


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 6)
        self.lstm2 = nn.LSTMCell(6, 6)
        self.linear = nn.Linear(6, 1)

    def forward(self, inputs):
        first = second = (torch.zeros(inputs.shape[0], 6), torch.zeros(inputs.shape[0], 6))
        outputs = []
        for value in inputs.split(1, dim=1):
            first = self.lstm1(value, first)
            second = self.lstm2(first[0], second)
            outputs.append(self.linear(second[0]))
        return torch.cat(outputs, dim=1)


def program():
    model = Sequence()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=2)

    def step(inputs, target):
        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(model(inputs), target)
            loss.backward()
            return loss

        return optimizer.step(closure)

    return {"model": model}, step
