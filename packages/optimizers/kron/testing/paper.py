"""Writes paper.json: PSGD Kron (Li 2024) in float64, with the noise of core's `normalsAt`. `python paper.py`."""
import pathlib, sys
import numpy as np

sys.path.append(str(pathlib.Path(__file__).parents[3] / "testkit/goldens"))
import paper_runs

def norm_bound(x):
    if x.ndim == 1:
        return np.abs(x).max()
    scale = np.abs(x).max()
    x = x / scale
    first = x[np.argmax((x**2).sum(1))] @ x
    return scale * np.linalg.norm(first / np.linalg.norm(first) @ x)


def by(q, x, side):
    """q x along a side."""
    matrix = np.diag(q) if q.ndim == 1 else q
    return np.moveaxis(np.tensordot(matrix, x, axes=(1, side)), 0, side)


def kron(
    params, lr=1e-3, momentum=0.9, weightDecay=0, preconditionerLr=0.1, updateProbability=None,
    maxSizeTriangular=8192, memorySaveMode=None, seed=0,
):
    def first_factors(shape):
        largest = len(shape) - 1 - int(np.argmax(shape[::-1]))
        for side, n in enumerate(shape):
            saved = memorySaveMode == "allDiagonal" or (memorySaveMode == "oneDiagonal" and side == largest)
            yield np.ones(n) if len(shape) < 2 or n == 1 or n > maxSizeTriangular or saved else np.eye(n)

    states = [{"m": np.zeros(p.shape), "q": list(first_factors(p.shape or (1,)))} for p in params]
    t = since = updates = 0

    def step(gradients):
        nonlocal t, since, updates
        chance = min(1, max(0.03, np.exp(-0.001 * (t - 500)))) if updateProbability is None else updateProbability
        t, since = t + 1, since + 1
        does = since * chance >= 1
        since, updates = (0, updates + 1) if does else (since, updates)
        for p, g, s in zip(params, gradients, states):
            s["m"] = momentum * s["m"] + (1 - momentum) * g
            average = (s["m"] / (1 - momentum**t)).reshape(p.shape or (1,))
            q = s["q"]
            if does and updates % 100 == 0 and len(q) > 1:
                largest = [np.abs(each).max() for each in q]
                q = [each * (np.prod(largest) ** (1 / len(q)) / norm) for each, norm in zip(q, largest)]
            if does:
                a, b = average, paper_runs.normals_at(seed, t, average.size).reshape(average.shape)
                for side, each in enumerate(q):
                    a = by(each, a, side)
                    b = by(1 / each if each.ndim == 1 else np.linalg.inv(each).T, b, side)
                new = []
                for side, each in enumerate(q):
                    rows = lambda x: np.moveaxis(x, side, 0).reshape(x.shape[side], -1)
                    if each.ndim == 1:
                        of_a, of_b = (rows(a) ** 2).sum(1), (rows(b) ** 2).sum(1)
                        new.append(each - preconditionerLr * (of_a - of_b) * each / norm_bound(of_a + of_b))
                    else:
                        of_a, of_b = rows(a) @ rows(a).T, rows(b) @ rows(b).T
                        new.append(each - preconditionerLr * np.triu(of_a - of_b) / norm_bound(of_a + of_b) @ each)
                q = new
            s["q"] = q
            direction = average
            for side, each in enumerate(q):
                direction = by(each**2 if each.ndim == 1 else each.T @ each, direction, side)
            direction = direction * min(1, 1.1 / (np.sqrt((direction**2).mean()) + 1e-8))
            p -= lr * (direction.reshape(p.shape) + weightDecay * p)

    return step


CASES = [
    {},
    {"lr": 0.01, "momentum": 0.5, "weightDecay": 0.1, "preconditionerLr": 0.5, "seed": 12345678901},
    {"lr": 0.01, "momentum": 0, "updateProbability": 0.3, "maxSizeTriangular": 3, "maximize": True},
    {"lr": 0.01, "memorySaveMode": "oneDiagonal", "seed": 7},
    {"lr": 0.01, "memorySaveMode": "allDiagonal", "updateProbability": 0.75},
]
SHAPES = [(3,), (4, 3), (3, 3), (2, 3, 4), (1, 2), ()]
paper_runs.write(__file__, [("Kron", options, kron) for options in CASES], SHAPES)
