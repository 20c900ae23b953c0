"""torch.distributed.checkpoint: save from 4 gloo processes, load into 2 with another placement. Prints seconds as JSON."""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor, zeros


def worker(rank, world, folder, count, what, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    if what == "save":
        whole = torch.arange(1 << 20, dtype=torch.float32).reshape(1024, 1024).sin()
        state = {f"layer.{i}.weight": distribute_tensor(whole + i, mesh, [Shard(0)]) for i in range(count)}
    else:
        state = {f"layer.{i}.weight": zeros((1024, 1024), device_mesh=mesh, placements=[Shard(0)]) for i in range(count)}
    dist.barrier()
    start = time.perf_counter()
    (dcp.save if what == "save" else dcp.load)(state, checkpoint_id=folder)
    dist.barrier()
    if rank == 0:
        with open(f"{folder}.{what}", "w") as file:
            file.write(str(time.perf_counter() - start))
    dist.destroy_process_group()


def run(what, world, folder, count):
    mp.spawn(worker, args=(world, folder, count, what, 29500 + os.getpid() % 1000), nprocs=world)
    with open(f"{folder}.{what}") as file:
        seconds = float(file.read())
    os.remove(f"{folder}.{what}")
    return seconds


if __name__ == "__main__":
    folder, count = sys.argv[1], int(sys.argv[2])
    print(json.dumps({"save": run("save", 4, folder, count), "reshard": run("load", 2, folder, count)}))
