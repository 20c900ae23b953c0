"""Prints hypergradients.json: gradients through ten steps of PyTorch's optimizers (differentiable=True, float64). `python hypergradients.py > hypergradients.json`

Each case names its optimizer, options, and the options that are learned; `gradients` are those of sum(w^2) after the steps,
by the first weights and the learned options, in the order of the case.
"""
import json, re, torch

STEPS, START, CURVATURE = 10, [1.0, -2.0, 0.5], [1.0, 0.3, 2.0]
BETAS = [0.9, 0.99]
CASES = [
    ("AdamW", {"lr": 0.1, "betas": BETAS}, ["lr"]),
    ("AdamW", {"lr": 0.1, "betas": BETAS}, []),
    ("AdamW", {"lr": 0.1, "betas": BETAS, "weightDecay": 0.05, "eps": 1e-3}, ["lr", "betas", "weightDecay", "eps"]),
    ("AdamW", {"lr": 0.03, "betas": [0.3, 0.8], "amsgrad": True}, ["lr", "betas"]),
    ("Adam", {"lr": 0.1, "betas": BETAS, "weightDecay": 0.1, "amsgrad": True, "eps": 0.1}, ["lr", "betas", "weightDecay", "eps"]),
    ("Adam", {"lr": 0.01, "betas": [0.5, 0.6], "maximize": True}, ["lr", "betas"]),
    ("NAdam", {"lr": 0.1, "betas": BETAS}, ["lr"]),
    ("NAdam", {"lr": 0.1, "betas": BETAS, "momentumDecay": 0.01}, ["lr", "betas", "momentumDecay"]),
    ("NAdam", {"lr": 0.1, "betas": BETAS, "weightDecay": 0.1, "eps": 1e-3}, ["lr", "betas", "weightDecay", "eps"]),
    ("NAdam", {"lr": 0.02, "betas": [0.3, 0.8], "weightDecay": 0.1, "decoupledWeightDecay": True}, ["lr", "betas", "weightDecay"]),
    ("SGD", {"lr": 0.01, "weightDecay": 0.1}, ["lr", "weightDecay"]),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.1, "weightDecay": 0.1}, ["lr", "momentum", "dampening", "weightDecay"]),
    ("SGD", {"lr": 0.001, "momentum": 0.9, "nesterov": True, "maximize": True}, ["lr", "momentum"]),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 0.01, "weightDecay": 0.1}, ["lr", "alpha", "eps", "weightDecay"]),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "momentum": 0.8, "centered": True}, ["lr", "alpha", "momentum"]),
    ("Adamax", {"lr": 0.05, "betas": BETAS, "eps": 0.01, "weightDecay": 0.1}, ["lr", "betas", "eps", "weightDecay"]),
    ("RAdam", {"lr": 0.1, "betas": BETAS, "eps": 0.01, "weightDecay": 0.1}, ["lr", "betas", "eps", "weightDecay"]),
    ("RAdam", {"lr": 0.05, "betas": [0.4, 0.9], "weightDecay": 0.1, "decoupledWeightDecay": True}, ["lr", "betas", "weightDecay"]),
]


def differentiable_steps():
    """PyTorch's steps hand hyperparameters to ops as numbers, which has no gradient, and SGD detaches its first momentum: the same ops, taken apart."""
    kinds = ("addcmul_", "addcdiv_", "add", "add_")
    addcmul_, addcdiv_, add, add_ = (getattr(torch.Tensor, kind) for kind in kinds)
    is_tensor = lambda value: isinstance(value, torch.Tensor)
    torch.Tensor.addcmul_ = lambda x, a, b, value=1: (
        x.copy_(x.clone() + value * a.clone() * b.clone()) if is_tensor(value) else addcmul_(x, a, b, value=value))
    torch.Tensor.addcdiv_ = lambda x, a, b, value=1: (
        x.copy_(x.clone() + value * a.clone() / b.clone()) if is_tensor(value) else addcdiv_(x, a, b, value=value))
    torch.Tensor.add = lambda x, other, alpha=1: x.clone() + alpha * other.clone() if is_tensor(alpha) else add(x, other, alpha=alpha)
    torch.Tensor.add_ = lambda x, other, alpha=1: x.copy_(x.clone() + alpha * other.clone()) if is_tensor(alpha) else add_(x, other, alpha=alpha)
    torch.Tensor.detach = lambda x: x


def run(name, options, learned):
    leaf = lambda value: torch.tensor(value, requires_grad=True)
    first = leaf(START)
    leaves = [first]
    given = {}
    for key, value in options.items():
        made = value
        if key in learned:
            made = [leaf(each) for each in value] if isinstance(value, list) else leaf(value)
            leaves += made if isinstance(made, list) else [made]
        given[re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), key)] = tuple(made) if isinstance(made, list) else made
    param = first.clone()
    optimizer = getattr(torch.optim, name)([param], foreach=False, differentiable=True, **given)
    curvature = torch.tensor(CURVATURE)
    for _ in range(STEPS):
        w = param.clone()
        loss = (curvature * w * w).sum() + 0.1 * (w**4).sum()
        (param.grad,) = torch.autograd.grad(loss, w, create_graph=True)
        state = optimizer.state[param]
        for key in list(state):
            if isinstance(state[key], torch.Tensor):
                state[key] = state[key].clone()  # the step before saved it for its gradient, and this one overwrites it
        optimizer.step()
    gradients = torch.autograd.grad((param * param).sum(), leaves)
    return {"name": name, "options": options, "learned": learned, "params": param.tolist(), "gradients": [g.tolist() for g in gradients]}


torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
differentiable_steps()
cases = [run(*case) for case in CASES]
print(json.dumps({"torch": torch.__version__, "steps": STEPS, "start": START, "curvature": CURVATURE, "cases": cases}, indent=1))
