"""The GPT of the benches, in torch."""
import torch

nn, F = torch.nn, torch.nn.functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.fc = nn.Linear(width, 4 * width)
        self.out = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


class Gpt(nn.Module):
    def __init__(self, tokens, width, length, blocks, heads):
        super().__init__()
        self.tok = nn.Embedding(tokens, width)
        self.pos = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        self.positions = torch.arange(length)

    def forward(self, tokens):
        x = self.tok(tokens) + self.pos(self.positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x)).flatten(0, 1)
