"""What process-session.ts speaks with: one line of JSON each way, around a work of torch."""
import json
import os
import sys
import time

import torch

torch.set_num_threads(int(os.environ.get("OPT_NUM_THREADS", os.cpu_count())))


def make_optimizer(name, variant, parameters, **options):
    """`variant`: fused, foreach or single (the loop over tensors)."""
    options["foreach"] = variant == "foreach"
    if name in ("AdamW", "AMSGrad", "SGD"):
        options["fused"] = variant == "fused"
    makers = {
        "AdamW": lambda: torch.optim.AdamW(parameters, **options),
        "AMSGrad": lambda: torch.optim.Adam(parameters, amsgrad=True, **options),
        "SGD": lambda: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, **options),
    }
    return makers[name]() if name in makers else getattr(torch.optim, name)(parameters, **options)


def serve(open_work):
    """`open_work(request)` returns what runs a number of steps to their end, and what gives at most a number of result values."""
    run = result = None
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        if request["command"] == "open":
            run, result = open_work(request)
        elif request["command"] == "run":
            start = time.perf_counter()
            run(request["steps"])
            answer["milliseconds"] = (time.perf_counter() - start) * 1000
        else:
            answer["values"] = result(request["count"])
        print(json.dumps(answer), flush=True)
