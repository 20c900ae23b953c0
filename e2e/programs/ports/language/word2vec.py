import torch
from torch import nn
from torch.nn import functional as F


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.center = nn.Embedding(30, 6, sparse=True)
        self.context = nn.Embedding(30, 6, sparse=True)
        nn.init.uniform_(self.center.weight, -0.5, 0.5)
        nn.init.constant_(self.context.weight, 0.1)

    def forward(self, center, context, negatives):
        word = self.center(center).unsqueeze(-1)
        good = F.logsigmoid(torch.bmm(self.context(context).unsqueeze(1), word)).squeeze()
        bad = F.logsigmoid(-torch.bmm(self.context(negatives), word)).sum((1, 2))
        return -(good + bad).mean()


def program():
    model = SkipGram()
    optimizer = torch.optim.SparseAdam(model.parameters(), lr=1e-2)

    def step(center, context, negatives):
        loss = model(center, context, negatives)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return {"model": model}, step
