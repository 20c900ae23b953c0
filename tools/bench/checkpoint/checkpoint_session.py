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

folder, tensors, few, model, base = "", {}, {}, None, 0.0


def at(name):
    return os.path.join(folder, name)


def sync(path):
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def torch_save():
    torch.save(tensors, at("torch.pt"))
    sync(at("torch.pt"))


def safetensors_save(what, name):
    save_file(what, at(name))
    sync(at(name))


def dcp_merge_durable():
    """What ours promises, too: torch.save leaves the file to the system."""
    dcp_to_torch_save(at("dcp"), at("merged.pt"))
    sync(at("merged.pt"))


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


WORKS = {
    "torch.save + fsync": torch_save,
    "torch.load": lambda: torch.load(at("torch.pt")),
    "DCP save": lambda: dcp.save(tensors, checkpoint_id=at("dcp")),
    "DCP load": dcp_load,
    "DCP merge": lambda: dcp_to_torch_save(at("dcp"), at("merged.pt")),
    "DCP merge + fsync": dcp_merge_durable,
    "clone": lambda: copied(tensors),
}
if save_file is not None:
    WORKS |= {
        "safetensors save_file + fsync": lambda: safetensors_save(tensors, "st.safetensors"),
        "safetensors load_file": lambda: load_file(at("st.safetensors")),
        "safetensors load_file, touched": lambda: touched(load_file(at("st.safetensors"))),
        "safetensors load_file + load_state_dict": load_into,
        "safetensors load_file, copied": lambda: copied(load_file(at("st.safetensors"))),
        "100,000 tensors: safetensors save_file + fsync": lambda: safetensors_save(few, "few.safetensors"),
        "100,000 tensors: safetensors load_file": lambda: load_file(at("few.safetensors")),
    }
WRITES = {
    "torch.save + fsync": "torch.pt",
    "DCP save": "dcp",
    "DCP merge": "merged.pt",
    "DCP merge + fsync": "merged.pt",
    "safetensors save_file + fsync": "st.safetensors",
    "100,000 tensors: safetensors save_file + fsync": "few.safetensors",
}
READS = {
    "torch.load": "torch.pt",
    "DCP load": "dcp",
    "DCP merge": "dcp",
    "DCP merge + fsync": "dcp",
    "safetensors load_file": "st.safetensors",
    "safetensors load_file, touched": "st.safetensors",
    "safetensors load_file + load_state_dict": "st.safetensors",
    "safetensors load_file, copied": "st.safetensors",
    "100,000 tensors: safetensors load_file": "few.safetensors",
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


def prepare(name):
    """What the work is to write is gone, what it needs is made, what it reads is in the page cache."""
    if name.startswith("100,000") and not few:
        few.update({f"layer.{i}.weight": torch.full((8, 4), float(i)) for i in range(100_000)})
    if name in WRITES:
        path = at(WRITES[name])
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
    if name in READS:
        read_through(at(READS[name]))
    return {}


def run(name):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    cpu = time.process_time()
    start = time.perf_counter()
    kept = WORKS[name]()
    milliseconds = 1000 * (time.perf_counter() - start)
    answer = {"milliseconds": milliseconds, "cpu": 1000 * (time.process_time() - cpu), "peak": status("VmHWM") - base}
    del kept
    return answer


for line in sys.stdin:
    request = json.loads(line)
    if request["command"] == "open":
        folder = request["folder"]
        os.makedirs(folder, exist_ok=True)
        made = [torch.arange(1 << 20, dtype=torch.float32).reshape(1024, 1024).sin() + i for i in range(request["count"])]
        tensors = {f"layer.{i}.weight": tensor for i, tensor in enumerate(made)}
        if "source" in request:
            torch.save(tensors, request["source"])
        base = status("VmRSS")
        print(json.dumps({"works": list(WORKS), "torch": torch.__version__}), flush=True)
    else:
        work = prepare if request["command"] == "prepare" else run
        print(json.dumps(work(request["name"])), flush=True)
