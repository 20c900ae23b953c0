"""PyTorch's and safetensors' side of the checkpoint benchmark: one line of JSON each way per request."""
import json
import os
import shutil
import sys
import time

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

try:
    from safetensors.torch import load_file, save_file
except ImportError:
    save_file = None

folder, tensors, model, base = "", {}, None, 0.0


def at(name):
    return os.path.join(folder, name)


def synced(path, result=None):
    """What ours promises, too: others leave the file to the system."""
    handle = os.open(at(path), os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def dcp_load():
    state = {name: torch.empty_like(tensor) for name, tensor in tensors.items()}
    dcp.load(state, checkpoint_id=at("dcp"))


def touched(loaded):
    """load_file maps: the data are in memory once every page was looked at."""
    for tensor in loaded.values():
        tensor.view(torch.uint8).view(-1)[::4096].sum()


def copied(loaded):
    return {name: tensor.clone() for name, tensor in loaded.items()}


class Model(torch.nn.Module):
    """Holds the tensors under their names, in memory of its own."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.ModuleList()
        for tensor in tensors.values():
            holder = torch.nn.Module()
            holder.weight = torch.nn.Parameter(tensor.clone())
            self.layer.append(holder)


def load_into():
    global model
    model = model or Model()
    model.load_state_dict(load_file(at("st.safetensors")))


# Each with what it reads, which is in the page cache when it runs, and what it writes, which is removed before.
WORKS = {
    "torch.save + fsync": (None, "torch.pt", lambda: synced("torch.pt", torch.save(tensors, at("torch.pt")))),
    "torch.load": ("torch.pt", None, lambda: torch.load(at("torch.pt"))),
    "DCP save": (None, "dcp", lambda: dcp.save(tensors, checkpoint_id=at("dcp"))),
    "DCP load": ("dcp", None, dcp_load),
    "DCP merge + fsync": ("dcp", "merged.pt", lambda: synced("merged.pt", dcp_to_torch_save(at("dcp"), at("merged.pt")))),
}
if save_file is not None:
    st = "st.safetensors"
    WORKS |= {
        "safetensors save_file + fsync": (None, st, lambda: synced(st, save_file(tensors, at(st)))),
        "safetensors load_file, touched": (st, None, lambda: touched(load_file(at(st)))),
        "safetensors load_file + load_state_dict": (st, None, load_into),
        "safetensors load_file, copied": (st, None, lambda: copied(load_file(at(st)))),
    }


def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1024


def read_through(path):
    piece = bytearray(1 << 20)
    files = [os.path.join(path, one) for one in os.listdir(path)] if os.path.isdir(path) else [path]
    for one in files:
        with open(one, "rb", buffering=0) as file:
            while file.readinto(piece):
                pass


def open_works(request):
    global folder, tensors, base
    folder = request["folder"]
    os.makedirs(folder, exist_ok=True)
    made = [torch.arange(1 << 20, dtype=torch.float32).reshape(1024, 1024).sin() + i for i in range(request["count"])]
    tensors = {f"layer.{i}.weight": tensor for i, tensor in enumerate(made)}
    if "source" in request:
        torch.save(tensors, request["source"])
    base = status("VmRSS")
    return {"works": list(WORKS), "torch": torch.__version__}


def prepare(request):
    reads, writes, _ = WORKS[request["name"]]
    if writes and os.path.isdir(at(writes)):
        shutil.rmtree(at(writes))
    elif writes and os.path.exists(at(writes)):
        os.remove(at(writes))
    if reads:
        read_through(at(reads))
    return {}


def run(request):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    cpu, start = time.process_time(), time.perf_counter()
    kept = WORKS[request["name"]][2]()
    milliseconds = 1000 * (time.perf_counter() - start)
    answer = {"milliseconds": milliseconds, "cpu": 1000 * (time.process_time() - cpu), "peak": status("VmHWM") - base}
    del kept
    return answer


COMMANDS = {"open": open_works, "prepare": prepare, "run": run}
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(COMMANDS[request["command"]](request)), flush=True)
