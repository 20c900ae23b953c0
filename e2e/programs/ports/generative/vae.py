import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 12)
        self.fc21 = nn.Linear(12, 3)
        self.fc22 = nn.Linear(12, 3)
        self.fc3 = nn.Linear(3, 12)
        self.fc4 = nn.Linear(12, 16)

    def forward(self, x, noise):
        hidden = F.relu(self.fc1(x))
        mean = self.fc21(hidden)
        log_variance = self.fc22(hidden)
        z = mean + noise * torch.exp(0.5 * log_variance)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mean, log_variance


def program():
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(x, noise):
        reconstructed, mean, log_variance = model(x, noise)
        error = F.binary_cross_entropy(reconstructed, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        loss = error + divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
