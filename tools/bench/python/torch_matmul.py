"""torch.matmul of two square matrices."""
import torch
from torch_session import serve


def open_work(request):
    size = request["size"]
    i = torch.arange(size * size, dtype=torch.int64)
    a = ((i * 7919 % 10007 + 1).double() / 10007).float().reshape(size, size)
    b = ((i * 104729 % 9973 + 1).double() / 9973).float().reshape(size, size)
    product = None

    def run(steps):
        nonlocal product
        for _ in range(steps):
            product = torch.matmul(a, b)

    return run, lambda count: product.flatten()[torch.arange(count) * 7919 % (size * size)].tolist()


serve(open_work)
