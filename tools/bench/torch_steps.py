"""Times torch.optim steps on request: one line of JSON each way."""
import json
import os
import sys
import time

import torch

torch.set_num_threads(int(os.environ.get("OPT_NUM_THREADS", os.cpu_count())))


def first_parameters(size):
    i = torch.arange(size, dtype=torch.int64)
    return (((i * 7919) % 2000 - 1000).double() / 1000 + 0.0005).float()


def gradients(size):
    i = torch.arange(size, dtype=torch.int64)
    return (((i * 104729) % 199 - 99).double() / 9900 + 0.00005).float()


def open_work(request):
    variant = request["variant"]
    options = {"foreach": variant == "foreach"}
    if request["optimizer"] != "NAdam":
        options["fused"] = variant == "fused"
    first, gradient = first_parameters(request["size"]), gradients(request["size"])
    parameters = []
    for _ in range(request["tensors"]):
        parameter = torch.nn.Parameter(first.clone())
        parameter.grad = gradient.clone()
        parameters.append(parameter)
    makers = {
        "AdamW": lambda: torch.optim.AdamW(parameters, **options),
        "AMSGrad": lambda: torch.optim.Adam(parameters, amsgrad=True, **options),
        "NAdam": lambda: torch.optim.NAdam(parameters, **options),
    }
    return parameters, makers[request["optimizer"]]()


parameters, optimizer = [], None
for line in sys.stdin:
    request = json.loads(line)
    answer = {}
    if request["command"] == "open":
        parameters, optimizer = open_work(request)
    elif request["command"] == "run":
        start = time.perf_counter()
        for _ in range(request["steps"]):
            optimizer.step()
        answer["milliseconds"] = (time.perf_counter() - start) * 1000
    else:
        answer["values"] = parameters[0].detach()[: request["count"]].tolist()
    print(json.dumps(answer), flush=True)
