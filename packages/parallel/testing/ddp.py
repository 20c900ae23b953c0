"""PyTorch's DistributedDataParallel on gloo, judge of DataParallel: reads a task as JSON, writes what each rank has."""
import json
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


class Given(torch.nn.Module):
    """Its gradient is the input."""

    def __init__(self, size):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return (self.w * x).sum()


def work(rank, size, task, meeting, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    given = torch.tensor(task["gradients"][rank], dtype=torch.float32)
    model = DistributedDataParallel(Given(given.numel()), bucket_cap_mb=0.001)
    model(given).backward()
    reduced = model.module.w.grad.view(torch.int32).tolist()

    net = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.Tanh(), torch.nn.Linear(9, 4))
    with torch.no_grad():
        for parameter, values in zip(net.parameters(), task["weights"]):
            parameter.copy_(torch.tensor(values).reshape(parameter.shape))
    parallel = DistributedDataParallel(net)
    optimizer = torch.optim.NAdam(net.parameters(), lr=0.01)
    losses = []
    for batches in task["batches"]:
        x = torch.tensor(batches[rank]["x"]).reshape(5, 6)
        y = torch.tensor(batches[rank]["y"]).reshape(5, 4)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(parallel(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    normed = DistributedDataParallel(torch.nn.BatchNorm1d(6))
    for batches in task["batches"]:
        normed(torch.tensor(batches[rank]["x"]).reshape(5, 6)).square().sum().backward()
    buffers = [buffer.flatten().tolist() for buffer in normed.module.buffers()]
    results[rank] = {"reduced": reduced, "losses": losses, "buffers": buffers}
    dist.destroy_process_group()


if __name__ == "__main__":
    task = json.load(sys.stdin)
    size = len(task["gradients"])
    with tempfile.TemporaryDirectory() as folder, mp.get_context("fork").Manager() as manager:
        results = manager.dict()
        # Forked: what takes long is loading PyTorch.
        mp.start_processes(work, (size, task, f"{folder}/meeting", results), size, start_method="fork")
        json.dump([results[rank] for rank in range(size)], sys.stdout)
