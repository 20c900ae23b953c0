import torch
from torch import nn
from torch.nn import functional as F


def block(in_channels, out_channels):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, padding="same"), nn.GroupNorm(2, out_channels), nn.ReLU()
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = block(1, 4)
        self.down2 = block(4, 8)
        self.middle = block(8, 8)
        self.up2 = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.merge2 = block(16, 4)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.merge1 = block(8, 4)
        self.head = nn.Conv2d(4, 1, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        large = self.down1(x)
        small = self.down2(self.pool(large))
        middle = self.middle(self.pool(small))
        merged = self.merge2(torch.cat([self.up2(middle), small], dim=1))
        return self.head(self.merge1(torch.cat([self.up1(merged), large], dim=1)))


def dice_loss(logits, masks):
    probabilities = torch.sigmoid(logits)
    shared = (probabilities * masks).sum((1, 2, 3))
    both = (probabilities + masks).sum((1, 2, 3))
    return 1 - ((2 * shared + 1) / (both + 1)).mean()


def program():
    model = UNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def step(images, masks):
        logits = model(images)
        loss = F.binary_cross_entropy_with_logits(logits, masks) + dice_loss(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
