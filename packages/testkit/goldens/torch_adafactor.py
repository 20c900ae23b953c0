"""Writes torch-adafactor.json: PyTorch's Adafactor on CPU in float64, 12 steps. `python torch_adafactor.py` beside it.

Arrays are base64, little-endian float64: first weights, gradients, and weights and state in the end.
"""
import base64, json, pathlib, re, torch

torch.set_num_threads(1)
STEPS = 12
CASES = [
    ((5,), {}),
    ((4, 6), {}),
    ((2, 3, 4), {"lr": 0.1, "beta2Decay": -0.5, "weightDecay": 0.25}),
    ((7,), {"lr": 0.2, "eps": [0.1, 1.0], "d": 2.0, "maximize": True}),
    ((6, 3), {"lr": 0.2, "eps": [0.1, 0.5], "d": 1.5, "weightDecay": 0.1, "maximize": True}),
]


def text(tensor):
    return base64.b64encode(tensor.detach().contiguous().numpy().tobytes()).decode()


def snake(options):
    return {re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), key): value for key, value in options.items()}


def cases():
    generator = torch.Generator().manual_seed(14)
    drawn = lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64)
    for shape, options in CASES:
        param = torch.nn.Parameter(drawn(*shape))
        first = text(param)
        gradients = [drawn(*shape) * 10.0 ** (step % 4 - 2) for step in range(STEPS)]
        optimizer = torch.optim.Adafactor([param], foreach=False, **snake(options))
        for gradient in gradients:
            param.grad = gradient.clone()
            optimizer.step()
        state = {key: text(value) for key, value in optimizer.state[param].items() if key != "step"}
        yield {
            "shape": shape, "options": options, "start": first, "gradients": [text(gradient) for gradient in gradients],
            "end": {"param": text(param), **state},
        }


lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases())
pathlib.Path(__file__).with_name("torch-adafactor.json").write_text(f'{{"torch":"{torch.__version__}","cases":[\n{lines}\n]}}\n')
