import torch
from torch import nn
from torch.nn import functional as F


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.cls = nn.Parameter(torch.zeros(1, 1, 8))
        self.positions = nn.Parameter(torch.randn(1, 5, 8) * 0.02)
        layer = nn.TransformerEncoderLayer(
            8, 2, dim_feedforward=16, dropout=0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)
        self.head = nn.Linear(8, 5)

    def forward(self, images):
        patches = self.patches(images).flatten(2).transpose(1, 2)
        cls = self.cls.expand(images.shape[0], -1, -1)
        tokens = torch.cat([cls, patches], dim=1) + self.positions
        return self.head(self.encoder(tokens)[:, 0])


def program():
    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)

    def step(images, labels):
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return {"model": model}, step
