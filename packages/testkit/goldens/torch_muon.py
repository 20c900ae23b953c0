"""Writes torch-muon.json: PyTorch's Muon on CPU in float32, 25 steps. `python torch_muon.py` beside it.

Arrays are base64, little-endian float32: first weights, gradients, and weights and momentum in the end.
"""
import base64, json, pathlib, re, torch

torch.set_num_threads(1)
STEPS = 25
CASES = [
    ((8, 12), {}),
    ((12, 5), {"lr": 0.02, "weightDecay": 0}),
    ((16, 16), {"lr": 0.02, "momentum": 0.4, "adjustLrFn": "match_rms_adamw"}),
    ((3, 33), {"lr": 0.05, "momentum": 0.9, "nesterov": False, "nsSteps": 7, "nsCoefficients": [2.0, -1.5, 0.5], "eps": 0.1}),
    ((1, 6), {"lr": 0.01, "weightDecay": 0.5}),
]


def text(tensor):
    return base64.b64encode(tensor.detach().contiguous().numpy().tobytes()).decode()


def snake(options):
    return {re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), key): value for key, value in options.items()}


def cases():
    generator = torch.Generator().manual_seed(13)
    for shape, options in CASES:
        param = torch.nn.Parameter(torch.randn(shape, generator=generator))
        first = text(param)
        scale = 10.0 ** torch.randint(-3, 2, (STEPS, 1, 1), generator=generator)
        gradients = list(torch.randn((STEPS, *shape), generator=generator) * scale)
        optimizer = torch.optim.Muon([param], **snake(options))
        for gradient in gradients:
            param.grad = gradient.clone()
            optimizer.step()
        yield {
            "shape": shape, "options": options, "start": first, "gradients": [text(gradient) for gradient in gradients],
            "param": text(param), "momentum_buffer": text(optimizer.state[param]["momentum_buffer"]),
        }


lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases())
pathlib.Path(__file__).with_name("torch-muon.json").write_text(f'{{"torch":"{torch.__version__}","cases":[\n{lines}\n]}}\n')
