"""Writes paper.json: NorMuon (Li et al. 2025) in float64, without iterations: x is the direction over its norm, rounded to bfloat16. `python paper.py`."""
import pathlib, sys
import numpy as np

sys.path.append(str(pathlib.Path(__file__).parents[3] / "testkit/goldens"))
import paper_runs


def bfloat16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def matrices(shape, heads):
    count, rows, columns = shape if len(shape) == 3 else (1, shape[0], int(np.prod(shape[1:])))
    return count * heads, rows // heads, columns


def muon(params, lr=1e-3, weightDecay=0.1, momentum=0.95, nesterov=True, eps=1e-7, nsSteps=5, adjustLrFn="original", neuronBeta=None, heads=1):
    assert nsSteps == 0  # products in bfloat16 have PyTorch's runs as their judge
    buffers = [np.zeros_like(p) for p in params]
    averages = [np.zeros(matrices(p.shape, heads)[:2]) for p in params]

    def step(gradients):
        for p, g, m, v in zip(params, gradients, buffers, averages):
            m += (1 - momentum) * (g - m)
            d = g + momentum * (m - g) if nesterov else m
            _, rows, columns = shape = matrices(p.shape, heads)
            x = bfloat16(d.reshape(shape))
            norm = bfloat16(np.sqrt((x * x).sum((1, 2), keepdims=True)))
            x = bfloat16(x / bfloat16(np.maximum(norm, np.float32(eps)))).astype(np.float64)
            if neuronBeta is not None:
                v *= neuronBeta
                v += (1 - neuronBeta) * (x * x).mean(2)
                y = x / (np.sqrt(v)[:, :, None] + 1e-10)
                length = lambda z: np.sqrt((z * z).sum((1, 2), keepdims=True))
                x = y * length(x) / (length(y) + 1e-10)
            factor = 0.2 * np.sqrt(max(rows, columns)) if adjustLrFn == "match_rms_adamw" else np.sqrt(max(1, rows / columns))
            p -= lr * weightDecay * p
            p -= lr * factor * x.reshape(p.shape)

    return step


CASES = [
    {"nsSteps": 0, "neuronBeta": 0.95},
    {"nsSteps": 0, "neuronBeta": 0, "nesterov": False, "lr": 0.02},
    {"nsSteps": 0, "neuronBeta": 0.5, "adjustLrFn": "match_rms_adamw", "lr": 0.01, "weightDecay": 0, "maximize": True},
    {"nsSteps": 0, "neuronBeta": 0.9, "heads": 2, "momentum": 0.5, "lr": 0.05},
    {"nsSteps": 0, "heads": 2, "lr": 0.05},
]
SHAPES = [(4, 3), (2, 5), (3, 4, 2), (2, 2, 1, 3)]
paper_runs.write(__file__, [("Muon", options, muon) for options in CASES], SHAPES)
