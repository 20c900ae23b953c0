"""Writes paper.json: GaLore (Zhao et al. 2024) and APOLLO (Zhu et al. 2024) in float64. `python paper.py`.

Singular vectors have the sign in which they point along those before. Random projections are core's `normalsAt`.
"""
import pathlib, random, sys
import numpy as np

sys.path.append(str(pathlib.Path(__file__).parents[3] / "testkit/goldens"))
import paper_runs


def is_left(shape, kind):
    """Whether the rows' side is projected."""
    if kind in ("left", "right"):
        return kind == "left"
    return (shape[0] < shape[1]) == (kind == "std")


class LowRank:
    """Adam's averages of a parameter, with a projection if it is a matrix."""

    def __init__(self, shape, rank, kind):
        self.is_matrix = len(shape) == 2
        self.left = self.is_matrix and is_left(shape, kind)
        self.rank = min(rank, *shape) if self.is_matrix else None
        self.p, self.m, self.v = None, 0, 0

    def into(self, g):
        if not self.is_matrix:
            return g
        return self.p.T @ g if self.left else g @ self.p

    def back(self, x):
        if not self.is_matrix:
            return x
        return self.p @ x if self.left else x @ self.p.T

    def add(self, r, b1, b2):
        self.m = b1 * self.m + (1 - b1) * r
        self.v = b2 * self.v + (1 - b2) * r * r


def galore(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weightDecay=0, rank=128, updateProjectionGap=200, scale=1, projectionType="std"):
    b1, b2 = betas
    states = [LowRank(p.shape, rank, projectionType) for p in params]
    t = 0

    def step(gradients):
        nonlocal t
        t += 1
        for p, g, s in zip(params, gradients, states):
            if s.is_matrix and (t - 1) % updateProjectionGap == 0:
                u, _, vh = np.linalg.svd(g, full_matrices=False)
                new = u[:, : s.rank] if s.left else vh[: s.rank].T
                s.p = new if s.p is None else new * np.where((s.p * new).sum(0) < 0, -1, 1)
            s.add(s.into(g), b1, b2)
            n = s.m / (1 - b1**t) / (np.sqrt(s.v / (1 - b2**t)) + eps)
            p -= lr * ((scale if s.is_matrix else 1) * s.back(n) + weightDecay * p)

    return step


def apollo(
    params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weightDecay=0, rank=256, updateProjectionGap=200, scale=1,
    scaleType="channel", projectionType="std", normGrowthLimit=1.01, seed=0,
):
    b1, b2 = betas
    states = [LowRank(p.shape, rank, projectionType) for p in params]
    last = [None] * len(params)
    t = 0

    def step(gradients):
        nonlocal t
        t += 1
        size = lr * np.sqrt(1 - b2**t) / (1 - b1**t)
        for i, (p, g, s) in enumerate(zip(params, gradients, states)):
            if s.is_matrix and (t - 1) % updateProjectionGap == 0:
                sides = (p.shape[0 if s.left else 1], s.rank)
                s.p = paper_runs.normals_at(seed, t, sides[0] * sides[1]).reshape(sides) / np.sqrt(s.rank)
            r = s.into(g)
            s.add(r, b1, b2)
            update = s.m / (np.sqrt(s.v) + eps)
            if s.is_matrix:
                if scaleType == "channel":
                    norm = lambda x: np.linalg.norm(x, axis=0 if s.left else 1, keepdims=True)
                else:
                    norm = np.linalg.norm
                update = g * (norm(update) / (norm(r) + 1e-8))
                length = np.linalg.norm(update)
                if last[i] is not None and normGrowthLimit is not None:
                    limiter = max(length / (last[i] + 1e-8), normGrowthLimit) / normGrowthLimit
                    update, length = update / limiter, length / limiter
                last[i] = length
                update = update * np.sqrt(scale)
            p -= size * update
            p -= lr * weightDecay * p

    return step


COMMON = {
    "lr": [0.003, 0.01, 0.05], "betas": [[0.9, 0.999], [0.5, 0.9], [0, 0.99]], "eps": [1e-8, 1e-3], "weightDecay": [0, 0.01, 0.1],
    "rank": [1, 2, 3], "updateProjectionGap": [1, 3, 7, 50], "scale": [0.25, 1, 4], "projectionType": ["std", "reverseStd", "left", "right"],
    "maximize": [True, False],
}
OWN = {"scaleType": ["channel", "tensor"], "normGrowthLimit": [1, 1.01, 1.5, None], "seed": [0, 7, 12345678901]}


def drawn(choices, source):
    return {key: source.choice(values) for key, values in choices.items() if source.random() < 0.7}


source = random.Random(1)
RUNS = [("GaLore", options, galore) for options in [{}] + [drawn(COMMON, source) for _ in range(5)]]
RUNS += [("APOLLO", options, apollo) for options in [{}] + [drawn({**COMMON, **OWN}, source) for _ in range(5)]]
SHAPES = [(3,), (4, 3), (3, 5), (3, 3)]
paper_runs.write(__file__, RUNS, SHAPES)
