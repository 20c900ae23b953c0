"""Prints torch.optim.SparseAdam's runs (CPU) as JSON: `python sparse_adam.py > sparse-adam.json`. The test computes the same inputs.

Each run has the state after its last step: float64 after 200 steps, and float32 after 25 with a correctly rounded square root.
"""
import json, torch

ROWS, WIDTH = 7, 3
OPTIONS = [{}, {"lr": 0.125, "betas": [0.25, 0.5], "eps": 0.0078125, "maximize": True}]
value = lambda i: (i * i * 17 + i * 31) % 257 / 64 - 2
rows_at = lambda t: [t * t % ROWS, (t * 3 + 1) % 5, t * t % ROWS]


def run(options, dtype, steps):
    table = torch.nn.Parameter(torch.tensor([[value(r * WIDTH + c) for c in range(WIDTH)] for r in range(ROWS)], dtype=dtype))
    optimizer = torch.optim.SparseAdam([table], **options)
    for t in range(steps):
        values = [[value(t * 100 + k * 10 + c) for c in range(WIDTH)] for k in range(3)]
        table.grad = torch.sparse_coo_tensor([rows_at(t)], torch.tensor(values, dtype=dtype), table.shape, check_invariants=True)
        optimizer.step()
    state = optimizer.state[table]
    ends = {"param": table.detach(), "exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"]}
    return {key: x.flatten().tolist() for key, x in ends.items()}


def float32(options):
    plain = torch.Tensor.sqrt_
    torch.Tensor.sqrt_ = lambda x: x.copy_(x.double().sqrt())
    try:
        return run(options, torch.float32, 25)
    finally:
        torch.Tensor.sqrt_ = plain


runs = [{"options": options, "float64": run(options, torch.float64, 200), "float32": float32(options)} for options in OPTIONS]
print(json.dumps({"torch": torch.__version__, "runs": runs}))
