import torch
from torch import nn
from torch.nn import functional as F


class TextClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(20, 6)
        self.fc = nn.Linear(6, 4)

    def forward(self, words, offsets):
        return self.fc(self.embedding(words, offsets))


def program():
    model = TextClassifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=2)

    def step(words, offsets, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(words, offsets), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return loss

    return {"model": model}, step
