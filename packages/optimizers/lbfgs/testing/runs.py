"""Runs of torch.optim.LBFGS in float64. `python runs.py < cases.json` prints their losses and parameters after each step.

Without input it writes runs.json beside it, which the tests read.
"""
import json, pathlib, re, sys, torch

torch.set_num_threads(1)
SMALL = [-1.2, 1.0, 0.5, -0.3]
CASES = [
    {"objective": "rosenbrock", "start": SMALL, "options": {"lr": 0.001, "maxIter": 5}},
    {"objective": "rosenbrock", "start": SMALL, "options": {"lr": 0.3, "historySize": 2}},
    {"objective": "rosenbrock", "start": [-1.2, 1.0], "options": {"lineSearch": "strongWolfe"}},
    {"objective": "rosenbrock", "start": SMALL, "options": {"lineSearch": "strongWolfe", "maxIter": 4, "historySize": 3, "lr": 0.5}},
    {"objective": "rosenbrock", "start": SMALL, "options": {"lineSearch": "strongWolfe", "maxIter": 3, "lr": 1e-3, "maxEval": 7}},
    {"objective": "waves", "start": [2.0, -1.5, 0.4, 1.1], "options": {"lineSearch": "strongWolfe", "maxIter": 2, "lr": 8}},
    {"objective": "waves", "start": [0.9, 3.0, -2.0, 0.1], "options": {"lineSearch": "strongWolfe", "maxIter": 3, "lr": 0.1}},
    {"objective": "waves", "start": SMALL, "options": {"lr": 0.05, "maxIter": 3, "toleranceGrad": 0.5}},
    {"objective": "waves", "start": SMALL, "options": {"lr": 0.05, "maxIter": 6, "toleranceChange": 1e-3}},
]


def snake(name):
    return {"lineSearch": "line_search_fn"}.get(name, re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), name))


def objective(name, x):
    if name == "waves":
        return ((x * x - 1) ** 2 + 0.3 * torch.sin(7 * x)).sum()
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def run(case, steps=8):
    params = [torch.nn.Parameter(torch.tensor([x], dtype=torch.float64)) for x in case["start"]]
    options = {snake(key): "strong_wolfe" if value == "strongWolfe" else value for key, value in case["options"].items()}
    optimizer = torch.optim.LBFGS(params, **options)

    def closure():
        optimizer.zero_grad()
        loss = objective(case["objective"], torch.cat(params))
        loss.backward()
        return loss

    trace = [[optimizer.step(closure).item(), *(p.item() for p in params)] for _ in range(steps)]
    state = optimizer.state_dict()["state"][0]
    return {**case, "trace": trace, "evaluations": state["func_evals"], "iterations": state["n_iter"]}


if sys.stdin.isatty():
    lines = ",\n".join(json.dumps(run(case)) for case in CASES)
    pathlib.Path(__file__).with_name("runs.json").write_text(f"[\n{lines}\n]\n")
else:
    print(json.dumps([run(case) for case in json.load(sys.stdin)]))
