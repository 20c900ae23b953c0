import torch
from torch import nn
from torch.nn import functional as F


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("content", torch.rand(1, 3, 6, 6))
        self.register_buffer("style", torch.rand(1, 3, 6, 6))
        self.pixels = nn.Parameter(self.content.clone())


def layers():
    return [nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(4, 6, 3), nn.ReLU()]


def gram(features):
    _, channels, height, width = features.shape
    return torch.einsum("bchw,bdhw->bcd", features, features) / (channels * height * width)


def program():
    images = Images()
    network = nn.Sequential(*layers())
    network.requires_grad_(False)
    optimizer = torch.optim.LBFGS([images.pixels], max_iter=2, line_search_fn="strong_wolfe")

    def step():
        def closure():
            optimizer.zero_grad()
            pixels = images.pixels
            features = network(pixels)
            smoothness = F.l1_loss(pixels[:, :, 1:], pixels[:, :, :-1])
            style_loss = F.mse_loss(gram(features), gram(network(images.style)))
            loss = F.mse_loss(features, network(images.content)) + 100 * style_loss + 0.01 * smoothness
            loss.backward()
            return loss

        return optimizer.step(closure)

    return {"images": images, "network": network}, step
