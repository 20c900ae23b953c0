"""Writes paper.json: Distributed Shampoo (Shi et al. 2023) in float64. `python paper.py`."""
import itertools, pathlib, sys
import numpy as np

sys.path.append(str(pathlib.Path(__file__).parents[3] / "testkit/goldens"))
import paper_runs


def inverse_root(factor, root, eps):
    values, vectors = np.linalg.eigh(factor)
    values = values - min(values[0], 0) + eps
    return vectors @ np.diag(values ** (-1 / root)) @ vectors.T


def shampoo(
    params, lr=0.01, betas=(0.9, 1), eps=1e-12, weightDecay=0, momentum=0, nesterov=False,
    grafting=None, blockSize=1024, preconditionFrequency=10, startStep=None,
):
    grafting = grafting or {"kind": "adam"}
    kind = grafting["kind"]
    b = grafting.get("beta2", 0.999 if kind == "adam" else 0.99)
    graft_eps = grafting.get("eps", 1e-8)
    b1, b2 = betas
    first = preconditionFrequency if startStep is None else startStep
    blocks = []
    for p in params:
        cuts = [[slice(at, at + blockSize) for at in range(0, extent, blockSize)] for extent in p.shape]
        for index in itertools.product(*cuts):
            view = p[index]
            blocks.append({"of": p, "index": index, "m": np.zeros(view.shape), "v": np.zeros(view.shape), "b": np.zeros(view.shape),
                           "f": [np.zeros((n, n)) for n in view.shape], "r": [None] * view.ndim})
    t = 0

    def step(gradients):
        nonlocal t
        t += 1
        of = {id(p): g for p, g in zip(params, gradients)}
        for s in blocks:
            p, g = s["of"][s["index"]], of[id(s["of"])][s["index"]]
            for side in range(g.ndim):
                rows = np.moveaxis(g, side, 0).reshape(g.shape[side], -1)
                s["f"][side] = s["f"][side] + rows @ rows.T if b2 == 1 else b2 * s["f"][side] + (1 - b2) * rows @ rows.T
            s["m"] = b1 * s["m"] + (1 - b1) * g
            s["v"] = b * s["v"] + (1 - b) * g**2
            filtered = s["m"] / (1 - b1**t)
            corrected = s["v"] / (1 - b**t) if kind == "adam" else s["v"]
            direction = grafted = filtered if kind == "sgd" else filtered / (np.sqrt(corrected) + graft_eps)
            if t >= first:
                if t == first or t % preconditionFrequency == 0:
                    bias = 1 if b2 == 1 else 1 - b2**t
                    s["r"] = [inverse_root(f / bias, 2 * g.ndim, eps) for f in s["f"]]
                direction = filtered
                for side, root in enumerate(s["r"]):
                    direction = np.moveaxis(np.tensordot(root, direction, axes=(1, side)), 0, side)
                direction = direction * (np.linalg.norm(grafted) / (np.linalg.norm(direction) + 1e-16))
            direction = direction + weightDecay * p
            if momentum:
                s["b"] = momentum * s["b"] + direction
                direction = direction + momentum * s["b"] if nesterov else s["b"]
            p -= lr * direction

    return step


CASES = [
    {},
    {"lr": 0.001, "betas": [0.9, 0.99], "eps": 1e-6, "weightDecay": 0.1, "preconditionFrequency": 3, "startStep": 7},
    {"betas": [0.8, 0.9], "eps": 1e-4, "blockSize": 2, "preconditionFrequency": 5, "maximize": True},
    {"lr": 0.002, "betas": [0, 0.95], "eps": 1e-3, "momentum": 0.9, "grafting": {"kind": "rmsprop"}, "preconditionFrequency": 1, "startStep": 4},
    {"momentum": 0.5, "nesterov": True, "weightDecay": 0.01, "grafting": {"kind": "sgd"}, "blockSize": 3},
    {"grafting": {"kind": "rmsprop", "beta2": 0.9, "eps": 1e-3}, "preconditionFrequency": 50, "startStep": 20},
]
SHAPES = [(3,), (4, 3), (3, 3), (2, 3, 4), (1, 2)]
paper_runs.write(__file__, [("Shampoo", options, shampoo) for options in CASES], SHAPES)
