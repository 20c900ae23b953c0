"""Layers of torch forward and backward."""
import torch
from torch_session import serve

nn, F = torch.nn, torch.nn.functional


def values(size, factor):
    i = torch.arange(size, dtype=torch.int64)
    x = i % 9973
    return ((x * x * 31 + i * factor) % 10007).double().div(10007).sub(0.5).float()


def recurrent(module):
    return module, lambda x: module(x)[0]


def own(module):
    return module, module


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def cross_entropy():
    targets = torch.arange(4096) * 7 % 512
    return None, lambda x: F.cross_entropy(x, targets)


LAYERS = {
    **{f"matmul,{size}": lambda: (None, torch.matmul) for size in (256, 512, 1024)},
    "linalg,qr": lambda: (None, lambda x: torch.linalg.qr(x).R),
    "linalg,eigh": lambda: (None, lambda x: torch.linalg.eigh(x).eigenvalues),
    "linalg,svd": lambda: (None, lambda x: torch.linalg.svd(x).S),
    "fft": lambda: (None, lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))),
    "attention": lambda: (None, attention),
    "attention-short": lambda: (None, attention),
    "lstm": lambda: recurrent(nn.LSTM(256, 256)),
    "gru": lambda: recurrent(nn.GRU(256, 256)),
    "softmax": lambda: (None, lambda x: F.softmax(x, -1)),
    "layer-norm": lambda: own(nn.LayerNorm(512)),
    "cross-entropy": cross_entropy,
    "batch-norm": lambda: own(nn.BatchNorm2d(64)),
    "max-pool": lambda: (None, lambda x: F.max_pool2d(x, 2)),
    "average-pool": lambda: (None, lambda x: F.avg_pool2d(x, 2)),
}


def magnitude(x):
    weights = torch.arange(x.numel(), dtype=torch.int64) % 7 + 1
    return (x.detach().flatten().double().abs() * weights).sum().item()


def open_work(request):
    module, forward = LAYERS[request["layer"]]()
    parameters = [] if module is None else list(module.parameters())
    with torch.no_grad():
        for i, p in enumerate(parameters):
            p.copy_((values(p.numel(), 7919 + 2 * i) / 8).reshape(p.shape))
    inputs = []
    for i, shape in enumerate(request["shapes"]):
        size = torch.Size(shape).numel()
        inputs.append(values(size, 104729 + 2 * i).reshape(shape).requires_grad_(not request["isForwardOnly"]))
    every = inputs + parameters
    output = gradient = None

    def run(steps):
        nonlocal output, gradient
        for _ in range(steps):
            for x in every:
                x.grad = None
            output = forward(*inputs)
            if request["isForwardOnly"]:
                continue
            if gradient is None:
                gradient = values(output.numel(), 1299).reshape(output.shape)
            output.backward(gradient)

    return run, lambda count: [magnitude(x) for x in [output] + [x.grad for x in every if x.grad is not None]]


serve(open_work)
