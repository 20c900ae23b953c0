import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.score = nn.Linear(8, 1)

    def forward(self, hidden, memory):
        scores = self.score(torch.tanh(self.query(hidden).unsqueeze(1) + self.key(memory)))
        return (F.softmax(scores, dim=1) * memory).sum(1)


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.source = nn.Embedding(9, 6, padding_idx=0)
        self.target = nn.Embedding(9, 6, padding_idx=0)
        self.encoder = nn.GRU(6, 8, batch_first=True)
        self.attention = Attention()
        self.cell = nn.GRUCell(14, 8)
        self.output = nn.Linear(8, 9)

    def forward(self, source, target):
        memory, last = self.encoder(self.source(source))
        inputs = self.target(target)
        hidden = last[0]
        logits = []
        for i in range(target.shape[1]):
            context = self.attention(hidden, memory)
            hidden = self.cell(torch.cat([inputs[:, i], context], dim=1), hidden)
            logits.append(self.output(hidden))
        return torch.stack(logits, dim=1)


def program():
    model = Seq2Seq()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(source, target):
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, 9), target[:, 1:].reshape(-1), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
