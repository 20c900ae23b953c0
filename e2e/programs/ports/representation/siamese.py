import torch
from torch import nn
from torch.nn import functional as F


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(10, 16)
        self.bend = nn.PReLU()
        self.norm = nn.InstanceNorm1d(4)
        self.output = nn.Linear(16, 4)

    def forward(self, x):
        groups = self.bend(self.hidden(x)).reshape(-1, 4, 4)
        return self.output(self.norm(groups).reshape(-1, 16))


def program():
    model = Encoder()
    optimizer = torch.optim.RAdam(model.parameters(), lr=5e-3)

    def step(anchors, positives, negatives, same):
        a, p, n = model(anchors), model(positives), model(negatives)
        triplets = F.triplet_margin_loss(a, p, n, margin=1, swap=True)
        apart = (2 - F.pairwise_distance(a, n)).clamp(min=0).square()
        contrastive = (same * F.pairwise_distance(a, p).square() + apart).mean()
        loss = triplets + contrastive + F.cosine_embedding_loss(a, n, 2 * same - 1, margin=0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
