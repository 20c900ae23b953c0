"""Runs calls in PyTorch: one JSON list of them comes in, what each gives (or why PyTorch rejects it) goes out."""
import base64, json, math, sys, warnings
import torch
import torch.nn.functional as F
from torch import nn

warnings.simplefilter("ignore")
torch.set_num_threads(1)
DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "i32": torch.int32, "u8": torch.uint8, "bool": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()} | {torch.int64: "i32"}


def made(given):
    numbers = torch.frombuffer(bytearray(base64.b64decode(given["numbers"]) or b"\0" * 8), dtype=torch.float64)
    value = numbers[: math.prod(given["shape"])].reshape(given["shape"]).to(DTYPES[given["dtype"]])
    return value.requires_grad_() if given["requiresGrad"] else value


def told(value):
    value = torch.zeros_like(value) if value._is_zerotensor() else value.detach()
    numbers = value.to(torch.float64).contiguous()
    text = base64.b64encode(numbers.numpy().tobytes()).decode()
    return {"dtype": NAMES[value.dtype], "shape": list(value.shape), "numbers": text}


def run(call):
    inputs = [made(given) for given in call["inputs"]]
    scope = {"inputs": inputs, "torch": torch, "F": F, "nn": nn, "math": math, "inf": math.inf, "nan": math.nan, **dict(zip("abcdefghijklmnop", inputs))}
    exec("\n".join(call["code"].split(";;")[:-1]), scope)
    out = eval(call["code"].split(";;")[-1].strip(), scope)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    wanted = [x for x in inputs if x.requires_grad]
    answer = {"outputs": [told(value) for value in outs]}
    loss = weighted(outs)
    grads = gradients(loss, wanted, call["second"])
    answer["gradients"] = spread(inputs, grads)
    if call["second"]:
        answer["second"] = spread(inputs, gradients(weighted([g for g in grads if g is not None]), wanted))
    return answer


def weighted(values):
    """Every element with a weight of its own."""
    loss = None
    for value in values:
        if value.requires_grad:
            weights = torch.sin(torch.arange(1, value.numel() + 1, dtype=torch.float64)).reshape(value.shape)
            part = (value.to(torch.float64) * weights).sum()
            loss = part if loss is None else loss + part
    return loss


def gradients(loss, wanted, create_graph=False):
    if loss is None:
        return [None] * len(wanted)
    return torch.autograd.grad(loss, wanted, create_graph=create_graph, allow_unused=True)


def spread(inputs, grads):
    """One entry for each input, null for those without a gradient."""
    rest = iter(grads)
    found = [next(rest) if x.requires_grad else None for x in inputs]
    return [None if g is None else told(g) for g in found]


answers = []
for call in json.load(sys.stdin):
    try:
        answers.append(run(call))
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        answers.append({"rejected": f"{type(error).__name__}: {error}"})
print(json.dumps(answers))
