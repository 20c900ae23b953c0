import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(1, 12)
        self.output = nn.Linear(12, 1)

    def forward(self, x):
        return self.output(torch.tanh(self.hidden(x)))


def program():
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def adapted(x, y):
        weights = dict(model.named_parameters())
        for _ in range(2):
            loss = F.mse_loss(functional_call(model, weights, (x,)), y)
            gradients = torch.autograd.grad(loss, weights.values(), create_graph=True)
            weights = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), gradients)}
        return weights

    def step(support_x, support_y, query_x, query_y):
        losses = []
        for task in range(3):
            weights = adapted(support_x[task], support_y[task])
            losses.append(F.mse_loss(functional_call(model, weights, (query_x[task],)), query_y[task]))
        loss = sum(losses) / 3
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
