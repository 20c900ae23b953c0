import torch
from torch import nn
from torch.nn import functional as F


def program():
    model = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024)

    def step(x, labels):
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return {"model": model}, step
