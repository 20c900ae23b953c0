"""Steps of torch.optim."""
import torch
from torch_session import Unavailable, make_optimizer, serve


def first_parameters(size):
    i = torch.arange(size, dtype=torch.int64)
    return (((i * 7919) % 2000 - 1000).double() / 1000 + 0.0005).float()


def gradients(size):
    i = torch.arange(size, dtype=torch.int64)
    return (((i * 104729) % 199 - 99).double() / 9900 + 0.00005).float()


def mixed_gradients(size):
    i = torch.arange(size, dtype=torch.int64)
    return (((i * i % 100003 * 7919 + i) % 100003 - 50001).double() / 5000100).float()


# Muon multiplies in bfloat16, which takes minutes a step of large matrices where the processor has no instructions for it.
LARGEST_IN_LOOPS = 2**19


def open_work(request):
    if request["optimizer"] == "Muon" and request["tensors"] * request["size"] > LARGEST_IN_LOOPS and not torch.cpu._is_avx512_bf16_supported():
        raise Unavailable("PyTorch's bfloat16 products take minutes here")
    shape = (request["rows"], -1) if "rows" in request else (-1,)
    first, gradient = (make(request["size"]).reshape(shape) for make in (first_parameters, mixed_gradients if request.get("isMixed") else gradients))
    parameters = []
    for _ in range(request["tensors"]):
        parameter = torch.nn.Parameter(first.clone())
        parameter.grad = gradient.clone()
        parameters.append(parameter)
    optimizer = make_optimizer(request["optimizer"], request["variant"], parameters)

    def run(steps):
        for _ in range(steps):
            optimizer.step()

    return run, lambda count: parameters[0].detach().flatten()[:count].tolist()


serve(open_work)
