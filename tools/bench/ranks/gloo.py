"""All-reduces of PyTorch's gloo: `gloo.py <ranks> <elements> <repetitions>` prints milliseconds and processor time of each rank."""
import os
import sys
import time

import torch
import torch.distributed
import torch.multiprocessing


def run(rank: int, size: int, elements: int, repetitions: int, file: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size, init_method=f"file://{file}")
    x = torch.ones(elements)
    lines = []
    for _ in range(repetitions):
        torch.distributed.barrier()
        begin, processor = time.perf_counter(), time.process_time()
        torch.distributed.all_reduce(x)
        lines.append(f"{1e3 * (time.perf_counter() - begin)} {1e3 * (time.process_time() - processor)}")
    os.write(1, ("".join(f"{rank} {line}\n" for line in lines)).encode())


if __name__ == "__main__":
    size, elements, repetitions = map(int, sys.argv[1:4])
    torch.multiprocessing.spawn(run, args=(size, elements, repetitions, sys.argv[4]), nprocs=size)
