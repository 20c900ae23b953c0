"""Training steps of whole models in torch, with what it has for attention and for its optimizers."""
import torch
from torch_session import make_optimizer, make_train, serve
from training_data import BATCHES, BLOCKS, HEADS, LENGTH, TOKENS, WIDTH, first_weights, make_batch, session

nn, F = torch.nn, torch.nn.functional


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


def mlp():
    return nn.Sequential(nn.Linear(28 * 28, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 10)),
    )


def open_work(request):
    model = {"mlp": mlp, "cnn": cnn, "gpt": Gpt}[request["model"]]()
    with torch.no_grad():
        for index, (name, p) in enumerate(model.named_parameters()):
            p.copy_(torch.tensor(first_weights(index, name, p.shape)).reshape(p.shape))
    batches = []
    for index in range(BATCHES):
        inputs, shape, labels = make_batch(request["model"], request["batch"], index)
        batches.append((torch.tensor(inputs).reshape(shape), torch.tensor(labels)))
    optimizer = make_optimizer(request["optimizer"], request["variant"], model.parameters(), lr=request["lr"])
    return session(make_train(model, optimizer, request["variant"], batches[0]), batches)


serve(open_work)
