"""Steps of SparseAdam on some rows of a table."""
import torch
from torch_session import serve


def open_work(request):
    rows, width, present = request["rows"], request["width"], request["present"]
    table = torch.nn.Parameter(torch.full((rows, width), 0.5))
    i = torch.arange(present * width, dtype=torch.int64)
    values = (((i * 104729) % 199 - 99).double() / 9900 + 0.00005).float().reshape(present, width)
    gradients = []
    for k in range(request["gradients"]):
        at = (1 + (k * present + torch.arange(present)) * 7919) % rows
        at[0] = 0
        gradients.append(torch.sparse_coo_tensor(at[None], values, (rows, width)).coalesce())
    optimizer = torch.optim.SparseAdam([table])
    done = 0

    def run(steps):
        nonlocal done
        for _ in range(steps):
            table.grad = gradients[done % len(gradients)]
            optimizer.step()
            done += 1

    return run, lambda count: table.detach()[0, :count].tolist()


serve(open_work)
