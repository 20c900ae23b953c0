import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.output = nn.Linear(10, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.output(torch.cat([hidden[-2], hidden[-1]], dim=1)).squeeze(1)


def program():
    model = Sentiment()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(tokens, lengths, labels):
        loss = F.binary_cross_entropy_with_logits(model(tokens, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
