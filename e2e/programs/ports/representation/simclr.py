import torch
from torch import nn
from torch.nn import functional as F

BATCH = 6


def program():
    model = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
    others = torch.arange(2 * BATCH).roll(BATCH)
    itself = torch.eye(2 * BATCH, dtype=torch.bool)

    def step(first, second):
        features = F.normalize(model(torch.cat([first, second])), dim=1)
        similarities = (features @ features.T).masked_fill(itself, -torch.inf)
        loss = F.cross_entropy(similarities / 0.5, others)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
