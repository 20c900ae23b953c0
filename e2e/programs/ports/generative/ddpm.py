import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS = 20


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, 8), nn.SiLU())
        self.begin = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.GroupNorm(4, 8)
        self.end = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x, t):
        frequencies = torch.exp(torch.arange(4) * (-math.log(10000) / 4))
        angles = t[:, None] * frequencies
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        hidden = self.norm(self.begin(x)) + time[:, :, None, None]
        return self.end(F.silu(hidden))


def program():
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    betas = torch.linspace(1e-4, 0.2, STEPS)
    kept = torch.cumprod(1 - betas, dim=0)

    def step(images, noise, t):
        share = kept[t].reshape(-1, 1, 1, 1)
        noisy = share.sqrt() * images + (1 - share).sqrt() * noise
        loss = F.mse_loss(model(noisy, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        return loss

    return {"model": model}, step
