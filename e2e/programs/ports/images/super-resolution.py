import torch
from torch import nn
from torch.nn import functional as F


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.PReLU(8), nn.Conv2d(8, 4, 3, padding=1))
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, small):
        details = self.shuffle(self.features(small))
        return F.interpolate(small, scale_factor=2, mode="bilinear") + details


def program():
    model = SuperResolution()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(large):
        small = F.interpolate(large, scale_factor=0.5, mode="nearest")
        loss = F.smooth_l1_loss(model(small), large, beta=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss

    return {"model": model}, step
