"""An FSDP2 + AdamW run of N processes over gloo.

    fsdp2.py save N FOLDER          trains three steps and saves FOLDER/nested and FOLDER/flat (dcp.save)
    fsdp2.py compare N FORM A B     loads A and B (dcp.load, set_state_dict) into fresh runs, trains one step more and compares all bits
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def build(world, seed):
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 5), torch.nn.Linear(5, 3))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    # Two groups that are not in the model's order, with several parameters of equal shape.
    biases = [p for p in reversed(list(model.parameters())) if p.ndim == 1]
    weights = [p for p in model.parameters() if p.ndim > 1]
    groups = [{"params": biases, "weight_decay": 0.0}, {"params": weights}]
    return model, torch.optim.AdamW(groups, lr=0.25 if seed == 0 else 0.5)


def step(model, optimizer, rank, i):
    optimizer.zero_grad()
    torch.manual_seed(10 * i + rank)
    model(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()


def states(model, optimizer, flat):
    return get_state_dict(model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=flat))


def save(rank, world, folder):
    model, optimizer = build(world, 0)
    for i in range(3):
        step(model, optimizer, rank, i)
    for form in ("nested", "flat"):
        m, o = states(model, optimizer, form == "flat")
        dcp.save({"model": m, "optim": o, "epoch": 3}, checkpoint_id=os.path.join(folder, form))


def resumed(rank, world, flat, folder):
    model, optimizer = build(world, 1)
    m, o = states(model, optimizer, flat)
    state = {"model": m, "optim": o, "epoch": 0}
    dcp.load(state, checkpoint_id=folder)
    options = StateDictOptions(flatten_optimizer_state_dict=flat)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"], options=options)
    step(model, optimizer, rank, 9)
    saved = optimizer.state_dict()
    whole = lambda t: t.full_tensor() if hasattr(t, "full_tensor") else t.clone()
    tensors = {n: whole(p.detach()) for n, p in model.named_parameters()}
    tensors |= {f"{k}.{n}": whole(v) for k, entry in saved["state"].items() for n, v in entry.items()}
    return tensors, saved["param_groups"], state["epoch"]


def compare(rank, world, form, a, b):
    one, two = (resumed(rank, world, form == "flat", folder) for folder in (a, b))
    assert one[0].keys() == two[0].keys() and len(one[0]) == 6 + 6 * 3
    assert all(torch.equal(one[0][name], two[0][name]) for name in one[0])
    assert one[1] == two[1] and one[1][0]["lr"] == 0.25 and one[1][0]["weight_decay"] == 0.0
    assert one[2] == two[2] == 3
    assert float(one[0]["0.step"]) == 4
    if rank == 0:
        print("equal")


def work(rank, world, port, mode, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    {"save": save, "compare": compare}[mode](rank, world, *args)
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may abort an orderly exit


if __name__ == "__main__":
    import socket

    mode, world, *args = sys.argv[1:]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, args=(int(world), port, mode, args), nprocs=int(world))
