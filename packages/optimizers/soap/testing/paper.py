"""Writes paper.json: SOAP (Vyas et al. 2024) in float64, with the first step that only makes the bases. `python paper.py`."""
import pathlib, sys
import numpy as np

sys.path.append(str(pathlib.Path(__file__).parents[3] / "testkit/goldens"))
import paper_runs


def soap(params, lr=3e-3, betas=(0.95, 0.95), shampooBeta=None, eps=1e-8, weightDecay=0.01, preconditionFrequency=10, maxPreconditionerDim=10000):
    b1, b2 = betas
    rate = b2 if shampooBeta is None else shampooBeta
    states = [None] * len(params)

    def into(x, bases):
        for side, basis in bases.items():
            x = np.moveaxis(np.tensordot(basis, x, axes=(0, side)), 0, side)
        return x

    def back(x, bases):
        return into(x, {side: basis.T for side, basis in bases.items()})

    def step(gradients):
        for i, (p, g) in enumerate(zip(params, gradients)):
            sides = [side for side, length in enumerate(p.shape) if p.ndim > 1 and length <= maxPreconditionerDim]
            rows = {side: np.moveaxis(g, side, 0).reshape(g.shape[side], -1) for side in sides}
            first = states[i] is None
            if first:
                states[i] = {"t": 0, "m": np.zeros_like(p), "v": np.zeros_like(p), "f": {s: np.zeros((p.shape[s],) * 2) for s in sides}}
            s = states[i]
            if not first:
                s["t"] += 1
                projected = into(g, s["q"])
                s["m"] = b1 * s["m"] + (1 - b1) * projected
                s["v"] = b2 * s["v"] + (1 - b2) * projected**2
                size = lr * np.sqrt(1 - b2 ** s["t"]) / (1 - b1 ** s["t"])
                p -= size * back(s["m"] / (np.sqrt(s["v"]) + eps), s["q"])
                p -= lr * weightDecay * p
            for side in sides:
                s["f"][side] = rate * s["f"][side] + (1 - rate) * rows[side] @ rows[side].T
            if first:
                s["q"] = {side: np.linalg.eigh(f)[1][:, ::-1] for side, f in s["f"].items()}
            elif s["t"] % preconditionFrequency == 0:
                average = back(s["m"], s["q"])
                for side in sides:
                    f, q = s["f"][side], s["q"][side]
                    order = np.argsort(-np.diag(q.T @ f @ q), kind="stable")
                    s["v"] = np.take(s["v"], order, side)
                    s["q"][side] = np.linalg.qr(f @ q[:, order])[0]
                s["m"] = into(average, s["q"])

    return step


CASES = [
    {},
    {"lr": 0.01, "betas": [0.9, 0.99], "weightDecay": 0.1, "preconditionFrequency": 1},
    {"lr": 0.02, "betas": [0.8, 0.9], "shampooBeta": 0.7, "eps": 1e-4, "preconditionFrequency": 3, "maximize": True},
    {"lr": 0.01, "weightDecay": 0, "preconditionFrequency": 7, "maxPreconditionerDim": 3},
    {"lr": 0.01, "betas": [0, 0.5], "preconditionFrequency": 200},
]
# Without equal eigenvalues: where there are some, each program finds other vectors.
SHAPES = [(3,), (4, 3), (3, 3), (2, 3, 4), (1, 2)]
paper_runs.write(__file__, [("SOAP", options, soap) for options in CASES], SHAPES)
