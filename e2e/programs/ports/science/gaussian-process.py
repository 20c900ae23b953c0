import math

import torch
from torch import nn


class GaussianProcess(nn.Module):
    def __init__(self):
        super().__init__()
        self.logLength = nn.Parameter(torch.tensor(-0.5))
        self.logScale = nn.Parameter(torch.tensor(0.2))
        self.logNoise = nn.Parameter(torch.tensor(-2.0))

    def forward(self, x, y):
        n = x.shape[0]
        distances = ((x.unsqueeze(1) - x.unsqueeze(0)) / self.logLength.exp()).square().sum(-1)
        noise = torch.eye(n) * (self.logNoise.exp() + 1e-6)
        covariance = torch.exp(-0.5 * distances) * self.logScale.exp() + noise
        factor = torch.linalg.cholesky(covariance)
        fit = (y @ torch.cholesky_solve(y.unsqueeze(1), factor)).squeeze()
        return 0.5 * (fit + 2 * torch.logdet(factor) + n * math.log(2 * math.pi))


def program():
    model = GaussianProcess()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
