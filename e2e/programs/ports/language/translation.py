import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

WIDTH = 8


def positional_encoding(length):
    frequencies = torch.exp(torch.arange(0, WIDTH, 2, dtype=torch.float64) * (-math.log(10000) / WIDTH))
    angles = torch.arange(length, dtype=torch.float64)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source = nn.Embedding(9, WIDTH)
        self.target = nn.Embedding(9, WIDTH)
        self.register_buffer("positions", positional_encoding(8).to(torch.get_default_dtype()))
        self.transformer = nn.Transformer(WIDTH, 2, 1, 1, dim_feedforward=16, dropout=0, batch_first=True)
        self.output = nn.Linear(WIDTH, 9)

    def forward(self, source, target):
        def placed(x):
            return x * math.sqrt(WIDTH) + self.positions[: x.shape[1]]

        padding = source == 0
        decoded = self.transformer(
            placed(self.source(source)),
            placed(self.target(target)),
            tgt_mask=torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1),
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=target == 0,
            memory_key_padding_mask=padding,
        )
        return self.output(decoded)


def program():
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=1, betas=(0.9, 0.98), eps=1e-9)
    schedule = LambdaLR(optimizer, lambda step: 0.1 * WIDTH**-0.5 * min((step + 1) ** -0.5, (step + 1) * 20**-1.5))

    def step(source, target):
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, 9), target[:, 1:].reshape(-1), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step, schedule.step
