import torch
from torch import nn
from torch.nn import functional as F


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(11, 6)
        self.rnn = nn.LSTM(6, 8, num_layers=2)
        self.decoder = nn.Linear(8, 11)

    def forward(self, tokens, state):
        output, state = self.rnn(self.encoder(tokens), state)
        return self.decoder(output), state


def program():
    model = LanguageModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=1)
    state = (torch.zeros(2, 3, 8), torch.zeros(2, 3, 8))

    def step(tokens, targets):
        nonlocal state
        logits, state = model(tokens, tuple(s.detach() for s in state))
        loss = F.cross_entropy(logits.reshape(-1, 11), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        return loss

    return {"model": model}, step
