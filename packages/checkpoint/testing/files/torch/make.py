"""Makes the files of this folder with torch 2.13: python make.py (nested/ and flat/: python fsdp2.py save 2 .)"""
import inspect
import json
import os
import pickle
import shutil

import torch
import torch.distributed.checkpoint

os.chdir(os.path.dirname(os.path.abspath(__file__)))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2))


def trained(groups, **options):
    optimizer = torch.optim.AdamW(groups, **options)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(5, 2)).square().sum().backward()
        optimizer.step()
    return optimizer


def tensors(optimizer, names):
    state = optimizer.state_dict()["state"]
    return {f"{name}.{key}": value.flatten().tolist() for i, name in enumerate(names) for key, value in state[i].items()}


names = [name for name, _ in model.named_parameters()]
expected = {}
by_name = trained(list(model.named_parameters()), lr=0.5, amsgrad=True)
torch.save({"state_dict": model.state_dict(), "optimizer_states": [by_name.state_dict()], "global_step": 2}, "lightning.pt")
expected["lightning.pt"] = tensors(by_name, names)

parameters = dict(model.named_parameters())
order = ["2.weight", "0.weight", "2.bias", "1.bias", "1.weight", "0.bias"]
swapped = trained([{"params": [parameters[n] for n in order[:2]]}, {"params": [parameters[n] for n in order[2:]], "weight_decay": 0.0}], lr=1.0)
torch.save({"model": model.state_dict(), "optimizer": swapped.state_dict(), "epoch": 3}, "swapped.pt")
expected["swapped.pt"] = tensors(swapped, order)

odd = {
    "sparse": torch.eye(3).to_sparse(),
    "complex128": torch.ones(2, dtype=torch.complex128),
    "float4": torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    "quantized": torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8),
    "counter": torch.tensor(7),
    "w": torch.arange(3.0),
}
torch.save(odd, "unreadable.pt")
torch.save({k: v for k, v in odd.items() if k != "float4"}, "unreadable_legacy.pt", _use_new_zipfile_serialization=False)
values = {"floats": [1.0, -0.0, 2.5, float("inf")], "ints": (1, 2**70), "set": {1, 2}, "none": None, "empty": {}, "bytes": b"\x00\xff"}
torch.save({**values, "size": torch.Size([1, 2]), "dtype": torch.float16, "complex": 1 + 2j, "device": torch.device("cpu")}, "values.pt")

# Twelve of everything: as text, 10 comes before 2. The rates have moved since the schedule began.
many = [torch.nn.Parameter(torch.full((2,), float(i))) for i in range(12)]
groups = [{"params": [p], "lr": 0.1 * (i + 1)} for i, p in enumerate(many)]
optimizer = torch.optim.AdamW([{**group, "weight_decay": 0.01 * i} for i, group in enumerate(groups)])
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
for step in range(3):
    for i, p in enumerate(many):
        p.grad = torch.full((2,), float(i + step + 1))
    optimizer.step()
    schedule.step()
model = {f"layers.{i}.w": p.detach() for i, p in enumerate(many)}
queue = [torch.full((i + 1,), float(i)) for i in range(12)]
run = {"model": model, "optimizer": optimizer.state_dict(), "queue": queue, "losses": [float(i) for i in range(12)]}
torch.save(run, "many.pt")
torch.distributed.checkpoint.save({"queue": queue}, checkpoint_id="many", no_dist=True)
expected["many.pt"] = tensors(optimizer, [f"layers.{i}.w" for i in range(12)])
expected["many.pt rates"] = {key: [group[key] for group in optimizer.param_groups] for key in ("lr", "initial_lr", "weight_decay")}

matrix = torch.nn.Parameter(torch.linspace(-1, 1, 6).reshape(2, 3))
muon = torch.optim.Muon([("w", matrix)], lr=0.25, momentum=0.75)
for step in range(2):
    matrix.grad = torch.sin(torch.arange(6.0) * (step + 1)).reshape(2, 3)
    muon.step()
torch.save({"model": {"w": matrix.detach()}, "optimizer": muon.state_dict()}, "muon.pt")
expected["muon.pt"] = {"w": matrix.detach().flatten().tolist(), **tensors(muon, ["w"])}

# One tensor of each element type that has a form here, and its bytes.
NAMES = ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
NAMES += ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool", "complex64"]
typed = {name: torch.tensor([1.0, 2.0, 0.5, 4.0]).to(getattr(torch, name)) for name in NAMES}
torch.save(typed, "dtypes.pt")
expected["dtypes.pt"] = {name: x.view(torch.uint8).flatten().tolist() for name, x in typed.items()}


def metadata_of(folder):
    with open(f"{folder}/.metadata", "rb") as file:
        return pickle.load(file)


# Of a DCP folder with these tensors: its .metadata, and one as torch 2.0 to 2.2 wrote it, whose properties are of another class.
torch.distributed.checkpoint.save(typed, checkpoint_id="dtypes", no_dist=True)
older = metadata_of("dtypes")
for stored in older.state_dict_metadata.values():
    stored.properties = torch.distributed._shard.sharded_tensor.metadata.TensorProperties(dtype=stored.properties.dtype)
for name in set(vars(older)) - {"state_dict_metadata", "planner_data", "storage_data"}:
    delattr(older, name)
os.rename("dtypes/.metadata", "dtypes.metadata")
shutil.rmtree("dtypes")
with open("dtypes_older.metadata", "wb") as file:
    pickle.dump(older, file, protocol=4)

# Groups of each optimizer, each option of the type that its signature has: torch counts by int, and takes no float there.
ODD = {
    "Adam": {"decoupled_weight_decay": True},
    "AdamW": {"amsgrad": True},
    "LBFGS": {"line_search_fn": "strong_wolfe", "max_iter": 7, "max_eval": 9, "history_size": 3},
    "Muon": {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 4},
    "RMSprop": {"centered": True},
    "SGD": {"nesterov": True, "momentum": 1.0},
}
KINDS = ["Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "LBFGS", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]


def group_of(kind):
    floats = {}
    for name, parameter in inspect.signature(getattr(torch.optim, kind)).parameters.items():
        of, value = str(parameter.annotation), parameter.default
        if "float" in of and type(value) is int:
            floats[name] = float(value)
        elif "float" in of and type(value) is tuple:
            floats[name] = tuple(None if each is None else float(each) for each in value)
    optimizer = getattr(torch.optim, kind)([("w", torch.nn.Parameter(torch.zeros(2, 2)))], **{**floats, **ODD.get(kind, {})})
    return optimizer.state_dict()


torch.save({kind: group_of(kind) for kind in KINDS}, "groups.pt")

with open("expected.json", "w") as file:
    json.dump(expected, file)
