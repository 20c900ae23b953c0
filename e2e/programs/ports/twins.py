"""Trains the twins of the ports from given weights on given data: JSON of both comes in, the losses go out."""
import importlib.util, json, pathlib, sys, warnings
import torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)
FOLDER = pathlib.Path(__file__).parent
DTYPES = {"f32": torch.float32, "f64": torch.float64, "i32": torch.int64, "bool": torch.bool}


def made(given):
    return torch.tensor(given["numbers"], dtype=torch.float64).reshape(given["shape"]).to(DTYPES[given["dtype"]])


def trained(run):
    torch.set_default_dtype(DTYPES[run["dtype"]])
    spec = importlib.util.spec_from_file_location("twin", FOLDER / f"{run['name']}.py")
    twin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(twin)
    models, step, *rest = twin.program()
    for name, model in models.items():
        model.load_state_dict({key: made(value) for key, value in run["states"][name].items()})
    batches = [[made(value) for value in batch] for batch in run["batches"]]
    losses = []
    for i in range(run["steps"]):
        losses.append(float(step(*batches[i % len(batches)])))
        for end_epoch in rest:
            end_epoch()
    return losses


answers = {}
for run in json.load(sys.stdin):
    answers.setdefault(run["name"], {})[run["dtype"]] = trained(run)
print(json.dumps(answers))
