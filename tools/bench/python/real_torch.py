"""Training steps of models of the size that users train, in torch."""
import math

import torch
from real_data import BATCHES, Peak, first_weights, make_batch, resident_bytes
from session import THREADS, Unavailable, serve
from torch_gpt import Gpt

torch.set_num_threads(THREADS)
nn, F = torch.nn, torch.nn.functional


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride, (size - 1) // 2, bias=False)


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = convolution(inputs, outputs, 3, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = convolution(outputs, outputs, 3, 1)
        self.bn2 = nn.BatchNorm2d(outputs)
        fits = inputs == outputs and stride == 1
        self.down = None if fits else nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        hidden = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(hidden + (x if self.down is None else self.down(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = convolution(3, 64, 3, 1)
        self.bn = nn.BatchNorm2d(64)
        self.blocks = nn.ModuleList()
        for i, width in enumerate((64, 128, 256, 512)):
            self.blocks.append(ResidualBlock(max(64, width // 2), width, 1 if i == 0 else 2))
            self.blocks.append(ResidualBlock(width, width, 1))
        self.fc = nn.Linear(512, 10)

    def forward(self, images, labels):
        x = F.relu(self.bn(self.conv(images)))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.fc(x.mean((2, 3))), labels)


class GptModel(Gpt):
    def __init__(self):
        super().__init__(65, 384, 256, 6, 6)

    def forward(self, tokens, following):
        return F.cross_entropy(super().forward(tokens), following.flatten())


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10_000, 650)
        self.lstm = nn.LSTM(650, 650, 2)
        self.head = nn.Linear(650, 10_000)

    def forward(self, words, following):
        return F.cross_entropy(self.head(self.lstm(self.embedding(words))[0]).flatten(0, 1), following.flatten())


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1 = nn.GroupNorm(32, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(256, outputs)
        self.norm2 = nn.GroupNorm(32, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = None if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, time):
        hidden = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return (x if self.skip is None else self.skip(x)) + self.conv2(F.silu(self.norm2(hidden)))


class Attention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(32, channels)
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        batch, channels, height, width = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(batch, 3, channels, height * width).transpose(2, 3).unbind(1)
        seen = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(seen.transpose(1, 2).reshape(x.shape))


class Level(nn.Module):
    def __init__(self, inputs, outputs, size):
        super().__init__()
        self.residuals = nn.ModuleList(Residual(each, outputs) for each in inputs)
        self.attentions = nn.ModuleList(Attention(outputs) for _ in inputs if size == 16)

    def at(self, i, x, time):
        hidden = self.residuals[i](x, time)
        return self.attentions[i](hidden) if len(self.attentions) > i else hidden


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time1 = nn.Linear(64, 256)
        self.time2 = nn.Linear(256, 256)
        self.first = nn.Conv2d(3, 64, 3, padding=1)
        widths, kept, width = [64, 128, 128, 128], [64], 64
        self.down = nn.ModuleList()
        for i, outputs in enumerate(widths):
            self.down.append(Level([width, outputs], outputs, 32 >> i))
            width = outputs
            kept += [outputs, outputs] + ([outputs] if i < 3 else [])
        self.shrink = nn.ModuleList(nn.Conv2d(each, each, 3, 2, 1) for each in widths[:3])
        self.middle = Level([width, width], width, 4)
        self.up = nn.ModuleList()
        for i, outputs in reversed(list(enumerate(widths))):
            self.up.append(Level([each + kept.pop() for each in (width, outputs, outputs)], outputs, 32 >> i))
            width = outputs
        self.grow = nn.ModuleList(nn.Conv2d(each, each, 3, padding=1) for each in reversed(widths[1:]))
        self.norm = nn.GroupNorm(32, 64)
        self.last = nn.Conv2d(64, 3, 3, padding=1)
        self.frequencies = 10_000 ** (-torch.arange(32) / 32)

    def forward(self, images, steps, noise):
        angles = steps[:, None] * self.frequencies
        time = F.silu(self.time2(F.silu(self.time1(torch.cat([angles.sin(), angles.cos()], 1)))))
        kept = [self.first(images)]
        for i, level in enumerate(self.down):
            for block in range(2):
                kept.append(level.at(block, kept[-1], time))
            if i < 3:
                kept.append(self.shrink[i](kept[-1]))
        x = kept[-1]
        for block in range(2):
            x = self.middle.at(block, x, time)
        for i, level in enumerate(self.up):
            for block in range(3):
                x = level.at(block, torch.cat([x, kept.pop()], 1), time)
            if i < 3:
                x = self.grow[i](F.interpolate(x, scale_factor=2))
        return F.mse_loss(self.last(F.silu(self.norm(x))), noise)


def network(*widths):
    return nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = network(13, 512, 256, 16)
        self.tables = nn.ModuleList(nn.Embedding(20_000, 16, sparse=True) for _ in range(26))
        self.top = network(16 + 351, 512, 256, 1)
        self.pairs = torch.tensor([i for i in range(27 * 27) if i % 27 < i // 27])

    def forward(self, dense, places, clicks):
        hidden = dense
        for layer in self.bottom:
            hidden = F.relu(layer(hidden))
        vectors = torch.stack([hidden, *(table(places[i]) for i, table in enumerate(self.tables))], 1)
        products = (vectors @ vectors.transpose(1, 2)).flatten(1)
        result = torch.cat([hidden, products[:, self.pairs]], 1)
        for i, layer in enumerate(self.top):
            result = F.relu(layer(result)) if i < 2 else layer(result)
        return F.binary_cross_entropy_with_logits(result.squeeze(1), clicks)


class Solution(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = network(2, 64, 64, 64, 64, 1)

    def at(self, x, t):
        hidden = torch.cat([x, t], 1)
        for i, layer in enumerate(self.layers):
            hidden = torch.tanh(layer(hidden)) if i < 4 else layer(hidden)
        return hidden

    def forward(self, x, t, starts):
        x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
        u = self.at(x, t)
        ux, ut = torch.autograd.grad(u.sum(), [x, t], create_graph=True)
        (uxx,) = torch.autograd.grad(ux.sum(), [x], create_graph=True)
        residual = ut + u * ux - 0.01 / math.pi * uxx
        start = self.at(starts, starts * 0) + torch.sin(math.pi * starts)
        return residual.square().mean() + start.square().mean()


MODELS = {"resnet": ResNet, "gpt": GptModel, "lstm": LanguageModel, "unet": UNet, "dlrm": Recommender, "pinn": Solution}


def open_work(request):
    name, is_compiled = request["model"], request["variant"] == "torch.compile"
    before = resident_bytes()
    model = MODELS[name]()
    with torch.no_grad():
        for index, (each, p) in enumerate(model.named_parameters()):
            p.copy_(torch.from_numpy(first_weights(index, each, tuple(p.shape))))
    batches = [[torch.from_numpy(each) for each in make_batch(name, index)] for index in range(BATCHES)]
    if name == "dlrm":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4 if name == "resnet" else 1e-3, fused=True)
    loss_of = torch.compile(model) if is_compiled else model
    losses = []
    peak = Peak(before)

    def run(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            try:
                loss = loss_of(*batches[len(losses) % BATCHES])
                loss.backward()
            except Exception as error:
                if not is_compiled:
                    raise
                raise Unavailable(f"torch.compile failed: {(str(error) or repr(error)).splitlines()[0]}") from error
            optimizer.step()
            losses.append(loss.item())

    return run, lambda count: losses[:count], peak.bytes


serve(open_work)
