"""Searches of torch.optim.lbfgs._strong_wolfe along slant t + bowl t^2 + height sin(pace t + phase). Completes line-search.json beside it.

Its rows take every branch of the search: most changes of one line in it change at least one of them.
"""
import json, math, pathlib, torch
from torch.optim.lbfgs import _strong_wolfe

FILE = pathlib.Path(__file__).with_name("line-search.json")


def search(row):
    slant, bowl, height, pace, phase, first, size, tolerance, most = row[:9]

    def objective(_, t, __):
        t = float(t)
        slope = slant + 2 * bowl * t + height * pace * math.cos(pace * t + phase)
        loss = slant * t + bowl * t * t + height * math.sin(pace * t + phase)
        return loss, torch.tensor([slope / size], dtype=torch.float64)

    direction = torch.tensor([size], dtype=torch.float64)
    loss, gradient = objective(None, 0, direction)
    _, _, t, evaluations = _strong_wolfe(
        objective, direction, first, direction, loss, gradient, gradient.dot(direction), tolerance_change=tolerance, max_ls=most
    )
    return [*row[:9], float(t), evaluations]


FILE.write_text("[\n" + ",\n".join(f"  {json.dumps(search(row))}" for row in json.loads(FILE.read_text())) + "\n]\n")
