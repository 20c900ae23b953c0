"""Training steps of whole models in torch, with what it has for attention and for its optimizers."""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "pytorch"))
from torch_session import make_optimizer, serve  # noqa: E402

nn, F = torch.nn, torch.nn.functional
BATCHES = 8
TOKENS, LENGTH, WIDTH, HEADS, BLOCKS = 64, 48, 64, 4, 2


def values(size, factor):
    i = torch.arange(size, dtype=torch.int64)
    x = i % 9973
    return ((x * x * 31 + i * factor) % 10007).double().div(10007).sub(0.5).float()


def integers(size, factor, below):
    return ((values(size, factor).double() + 0.5) * below).floor().long().clamp(max=below - 1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.ln2 = nn.LayerNorm(WIDTH)
        self.fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.out = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(TOKENS, WIDTH)
        self.pos = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.ln = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS, bias=False)
        self.positions = torch.arange(LENGTH)

    def forward(self, tokens):
        x = self.tok(tokens) + self.pos(self.positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x)).flatten(0, 1)


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 10)),
    )


def images(batch, index):
    return values(batch * 28 * 28, 104729 + 2 * index).reshape(batch, 1, 28, 28), integers(batch, 1299 + 2 * index, 10)


def texts(batch, index):
    seen = integers(batch * LENGTH, 104729 + 2 * index, TOKENS).reshape(batch, LENGTH)
    return seen, integers(batch * LENGTH, 1299 + 2 * index, TOKENS)


def set_first_weights(model):
    with torch.no_grad():
        for index, (name, p) in enumerate(model.named_parameters()):
            drawn = values(p.numel(), 7919 + 2 * index).double().reshape(p.shape)
            if p.dim() > 1:
                p.copy_(2 * drawn / p[0].numel() ** 0.5)
            elif name.endswith("weight"):
                p.fill_(1)
            else:
                p.copy_(drawn / 8)


def open_work(request):
    batch = request["batch"]
    model, make_batch = {"cnn": (cnn, images), "gpt": (Gpt, texts)}[request["model"]]
    model = model()
    set_first_weights(model)
    optimizer = make_optimizer("AdamW", request["variant"], model.parameters(), lr=request["lr"])
    batches = [make_batch(batch, index) for index in range(BATCHES)]
    losses = []

    def run(steps):
        for _ in range(steps):
            inputs, labels = batches[len(losses) % BATCHES]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

    return run, lambda count: losses[:count]


serve(open_work)
