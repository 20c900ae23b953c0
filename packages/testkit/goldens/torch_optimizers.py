"""Writes PyTorch's runs of optimizers (CPU, single tensor). Without arguments: of SGD, RMSprop, Adamax and RAdam, in torch-optimizers.json
beside it. `python torch_optimizers.py packages/optimizers/adagrad`: with the options of that package.json, in its testing/torch.json.

`float32`: end states after 25 steps, as PyTorch computes them (`torch`) and with a correctly rounded square root (`exact`);
arrays are base64, little-endian float32. `float64`: every step of a few elements, and two groups with absent gradients.
Optimizers that PyTorch lacks are those of formulas.py.
"""
import base64, formulas, inspect, json, pathlib, re, sys, torch

STEPS, SIZE = 25, 37
CONFIGS = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weightDecay": 0.1},
        {"lr": 0.01, "momentum": 0.95, "nesterov": True, "maximize": True},
    ],
    "RMSprop": [
        {"lr": 0.01},
        {"lr": 0.005, "alpha": 0.9, "momentum": 0.5, "centered": True, "weightDecay": 0.1},
        {"lr": 0.02, "alpha": 0.4, "eps": 0.01, "centered": True, "maximize": True},
    ],
    "Adamax": [
        {"lr": 0.002},
        {"lr": 0.02, "betas": [0.4, 0.99], "weightDecay": 0.1},
        {"lr": 0.01, "betas": [0.8, 0.9], "eps": 0.01, "maximize": True},
    ],
    "RAdam": [
        {"lr": 0.01},
        {"lr": 0.02, "betas": [0.9, 0.95], "weightDecay": 0.1, "decoupledWeightDecay": True},
        {"lr": 0.005, "betas": [0.3, 0.9], "weightDecay": 0.1, "maximize": True},
    ],
}


FOLDER = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
if FOLDER:
    CONFIGS = json.loads((FOLDER / "package.json").read_text())["opt"]["optimizers"]


def optimizer_class(name):
    return getattr(torch.optim, name, None) or getattr(formulas, name)


def second_group(name):
    """The options of its own that the second group has."""
    known = inspect.signature(optimizer_class(name)).parameters
    own = {"weightDecay": 0.5} if "weight_decay" in known else {}
    if name in ("SGD", "RMSprop"):
        return {**own, "momentum": 0.9}
    betas = [0.5, 0.75, 0.875][: len(known["betas"].default)] if "betas" in known else []
    return {**own, **({"betas": betas} if betas else {})}


def snake(options):
    return {re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), key): value for key, value in options.items()}


def start(name, params, options):
    return optimizer_class(name)(params, foreach=False, **snake(options))


def run(name, options, first, gradients):
    param = torch.nn.Parameter(first.clone())
    optimizer = start(name, [param], options)
    trace = []
    for gradient in gradients:
        param.grad = None if gradient is None else gradient.clone()
        optimizer.step()
        trace.append(param.detach().clone())
    return trace, optimizer.state[param]


def rounded_sqrt(body):
    """float32 roots by way of float64, whose second rounding changes nothing."""
    plain, inplace = torch.Tensor.sqrt, torch.Tensor.sqrt_
    torch.Tensor.sqrt = lambda x: plain(x.double()).to(x.dtype)
    torch.Tensor.sqrt_ = lambda x: x.copy_(plain(x.double()))
    try:
        return body()
    finally:
        torch.Tensor.sqrt, torch.Tensor.sqrt_ = plain, inplace


def text(tensor):
    return base64.b64encode(tensor.detach().contiguous().numpy().tobytes()).decode()


def end(trace, state):
    return {"param": text(trace[-1]), **{key: text(value) if value.dim() else value.item() for key, value in state.items() if key != "step" and value is not None}}


def float32_cases():
    generator = torch.Generator().manual_seed(12)
    for name, configs in CONFIGS.items():
        for i, options in enumerate(configs):
            first = torch.randn(SIZE, generator=generator)
            scale = 10.0 ** torch.randint(-3, 2, (STEPS, 1), generator=generator)
            gradients = list(torch.randn(STEPS, SIZE, generator=generator) * scale)
            absent = [0, 7] if i == 2 else []
            given = [None if step in absent else gradient for step, gradient in enumerate(gradients)]
            yield {
                "optimizer": name, "options": options, "size": SIZE, "steps": STEPS, "noneAt": absent,
                "param0": text(first), "grads": [text(gradient) for gradient in gradients],
                "torch": end(*run(name, options, first, given)),
                "exact": end(*rounded_sqrt(lambda: run(name, options, first, given))),
            }


def float64_cases():
    x0 = [0.5, -1.25, 2.0, 0.0]
    grads = [[0.1, -0.2, 0.3, 0.0], [-0.4, 0.5, -0.05, 1e-4], [0.02, 0.03, -0.6, 0.0], [1.0, -1.0, 0.001, -2.0], [0.0, 0.25, -0.125, 3.0], [0.3, -0.3, 0.3, -0.3], [0.1, 0.2, -0.3, 0.0], [-0.7, 0.1, 0.0, 0.4]]
    double = lambda values: torch.tensor(values, dtype=torch.float64)
    for name, configs in CONFIGS.items():
        for options in configs:
            trace, state = run(name, options, double(x0), [double(gradient) for gradient in grads])
            kept = {key: value.flatten().tolist() for key, value in state.items() if value is not None}
            yield {
                "id": f"torch_{name}_float64_{'_'.join(f'{key}={value}' for key, value in snake(options).items())}",
                "kind": "run", "source": f"run: torch {torch.__version__} foreach=False", "config": {"opt": name, **snake(options)},
                "inputs": {"x0": x0, "grads": grads, "dtype": "float64"},
                "expected": {"trace": [x.tolist() for x in trace], "state": kept},
            }
        groups = [{"lr": 0.1}, second_group(name)]
        common = {"lr": 0.01, **({"momentum": 0.5} if name == "SGD" else {})}
        a, b = (torch.nn.Parameter(double(values)) for values in ([1.0, 2.0], [3.0]))
        optimizer = start(name, [{"params": [p], **snake(group)} for p, group in zip((a, b), groups)], common)
        trace, absent = [], [None, [2.0], None, [2.0]]
        for gradient in absent:
            a.grad = double([0.5, -1.0])
            b.grad = None if gradient is None else double(gradient)
            optimizer.step()
            trace.append([a.tolist(), b.tolist()])
        yield {
            "id": f"torch_{name}_groups_none_grad", "kind": "run", "source": f"run: torch {torch.__version__}, float64",
            "config": {"opt": name, **snake(common), "groups": [snake(group) for group in groups]},
            "inputs": {"a": [1.0, 2.0], "b": [3.0], "grad_a": [0.5, -1.0], "grad_b": absent},
            "expected": {"trace_a_b": trace, "steps": [4, 2]},
        }


lines = lambda cases: ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
target = FOLDER / "testing/torch.json" if FOLDER else pathlib.Path(__file__).with_name("torch-optimizers.json")
target.parent.mkdir(exist_ok=True)
target.write_text(
    f'{{"torch":"{torch.__version__}","float32":[\n{lines(float32_cases())}\n],"float64":[\n{lines(float64_cases())}\n]}}\n'
)
