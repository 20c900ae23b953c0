"""Median seconds of torch.optim steps on the GPU: AdamW fused, NAdam foreach. Arguments: "AdamW 1 268435456" ...; prints JSON."""
import json
import statistics
import sys
import time

import torch

MAKERS = {
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, fused=True),
    "NAdam": lambda parameters: torch.optim.NAdam(parameters, foreach=True),
}
ROUNDS = 9


def median_step(name, tensors, size):
    parameters = [torch.nn.Parameter(torch.full((size,), 0.5, device="cuda")) for _ in range(tensors)]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 0.01)
    optimizer = MAKERS[name](parameters)
    steps = 10 if size > 2**20 else 100
    times = []
    for _ in range(ROUNDS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            optimizer.step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / steps)
    return statistics.median(times[1:])


assert torch.cuda.is_available(), "torch sees no GPU"
result = {}
for work in sys.argv[1:]:
    name, tensors, size = work.split()
    result[work] = median_step(name, int(tensors), int(size))
    torch.cuda.empty_cache()
print(json.dumps(result))
