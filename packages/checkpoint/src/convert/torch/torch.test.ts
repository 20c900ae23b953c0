import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { adamState } from "../../../testing/adam-state";
import { python, runPython, torchFile, withTorch } from "../../../testing/files/torch-files";
import { scratchFolder } from "../../../testing/fixtures";
import { localCommunicators, mergeCheckpoint, optimizerContents, reshardCheckpoint, saveCheckpoint } from "../../index";
import { convertCheckpoint } from "../convert";

const scratch = scratchFolder();

/** Runs a script in the folder and gives what it printed as JSON. */
function inPython(script: string): unknown {
  const file = join(scratch.path, "script.py");
  writeFileSync(file, script);
  return JSON.parse(runPython(file, scratch.path));
}

const weight = Float32Array.from({ length: 70 }, (_, i) => i / 3);
const rows = [0, 3, 6, 8, 10]; // ten rows over four ranks

async function saveFourRanks(): Promise<void> {
  await Promise.all(
    localCommunicators(4).map((communicator) => {
      const [begin, end] = [rows[communicator.rank]!, rows[communicator.rank + 1]!];
      const slice = { dtype: "f32", shape: [end - begin, 7], data: weight.slice(begin * 7, end * 7) };
      const scalar = { dtype: "f32", shape: [], data: Float32Array.of(0.5) };
      const tensors = { "fc.weight": slice, "fc.weight.exp_avg": slice, lr: scalar };
      return saveCheckpoint(join(scratch.path, "run"), { step: 1, tensors }, { communicator });
    }),
  );
}

/** Two tests need the safetensors package beside torch. */
const safetensors =
  python !== undefined &&
  runPython("from importlib.util import find_spec; print(find_spec('safetensors'))", ".").trim() !== "None";
const withSafetensors = it.skipIf(!safetensors);
const noted = safetensors ? "" : " (that Python has no safetensors)";

/** A model of one parameter, and what its checkpoints are read by. */
const MODEL = `
import json, torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(2))
`;

const trained = () => {
  const { tensors, values } = optimizerContents(adamState());
  const w = { dtype: "F32", shape: [2], data: Float32Array.of(1, 2) };
  return { step: 5, tensors: { w, ...tensors }, values };
};

describe.skipIf(python === undefined)(withTorch, () => {
  withSafetensors(`our shards load through HuggingFaceStorageReader, unchanged${noted}`, async () => {
    await saveFourRanks();
    const loaded = inPython(`
import json, torch
import torch.distributed.checkpoint as dcp
state = {"fc.weight": torch.zeros(10, 7), "fc.weight.exp_avg": torch.zeros(10, 7), "lr": torch.zeros(())}
dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader("run/step-00000001"), no_dist=True)
print(json.dumps({name: value.flatten().tolist() for name, value in state.items()}))
`);
    expect(loaded).toEqual({ "fc.weight": [...weight], "fc.weight.exp_avg": [...weight], lr: [0.5] });
  });

  withSafetensors(`its consolidation merges our shards to what we merge${noted}`, async () => {
    await saveFourRanks();
    await mergeCheckpoint(join(scratch.path, "run"), join(scratch.path, "ours.safetensors"));
    const same = inPython(`
import json, os, torch
from safetensors.torch import load_file
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
os.mkdir("merged")
consolidate_safetensors_files("run/step-00000001", "merged", {"fc.weight": 1, "fc.weight.exp_avg": 1, "lr": 1})
theirs = {k: v for f in os.listdir("merged") if f.endswith(".safetensors") for k, v in load_file("merged/" + f).items()}
ours = load_file("ours.safetensors")
# torch 2.13's consolidator writes zeros for tensors without dimensions, its own too.
equal = [name for name in sorted(theirs) if theirs[name].dim() > 0 and torch.equal(ours[name], theirs[name])]
print(json.dumps([sorted(ours), equal, ours["lr"].item()]))
`);
    expect(same).toEqual([["fc.weight", "fc.weight.exp_avg", "lr"], ["fc.weight", "fc.weight.exp_avg"], 0.5]);
  });

  it("a .pt goes to a checkpoint of ours, over three ranks, and back: torch.load gives the same objects", async () => {
    inPython(`
import collections, torch
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4))
optimizer = torch.optim.AdamW(list(model.named_parameters()), lr=1.0, amsgrad=True)
for _ in range(3):
    model(torch.randn(5, 3)).square().sum().backward()
    optimizer.step()
odd = {"empty": {}, "list": [1, 2.0, (3,)], "set": {1, 2}, "none": None, "bytes": b"xy", "inf": float("inf"), "od": collections.OrderedDict(a=1)}
types = {name: torch.arange(3).to(getattr(torch, name)) for name in "bfloat16 float16 float64 float8_e4m3fn float8_e5m2 uint16 uint32 uint64 int8 bool complex64".split()}
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, **odd, "types": types}, "a.pt")
print("null")
`);
    await convertCheckpoint(join(scratch.path, "a.pt"), join(scratch.path, "one"), { to: "checkpoint" });
    await reshardCheckpoint(join(scratch.path, "one"), join(scratch.path, "three"), { ranks: 3 });
    await convertCheckpoint(join(scratch.path, "three"), join(scratch.path, "b.pt"), { to: "pt" });
    const count = inPython(`
import torch
def count(a, b):
    assert type(a) is type(b), (a, b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert bytes(a.contiguous().untyped_storage()) == bytes(b.contiguous().untyped_storage())
        return 1
    if isinstance(a, dict):
        assert list(a) == list(b), (list(a), list(b))
        return sum(count(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        return sum(map(count, a, b))
    assert a == b
    return 0
print(count(torch.load("a.pt"), torch.load("b.pt", weights_only=True)))
`);
    expect(count).toBe(9 + 6 * 4 + 11);
  });

  it("what an optimizer here trained, torch's optimizer takes, and goes on with", async () => {
    await saveCheckpoint(join(scratch.path, "run"), trained());
    await convertCheckpoint(join(scratch.path, "run"), join(scratch.path, "run.pt"), { to: "pt" });
    await convertCheckpoint(join(scratch.path, "run"), join(scratch.path, "dcp"), { to: "dcp" });
    const [loaded, ...others] = inPython(`${MODEL}def after(load, named=False):
    model = Model()
    optimizer = torch.optim.AdamW(model.named_parameters() if named else model.parameters(), lr=9.0)
    load(model, optimizer)
    model.w.grad = torch.ones(2)
    optimizer.step()
    state = optimizer.state_dict()["state"][0]
    return [model.w.tolist(), {k: v.tolist() for k, v in state.items()}, optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["weight_decay"]]
def load_file(model, optimizer):
    saved = torch.load("run.pt", weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
def load_dcp(model, optimizer):
    m, o = get_state_dict(model, optimizer)
    state = {"model": m, "optim": o}
    dcp.load(state, checkpoint_id="dcp", no_dist=True)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
print(json.dumps([after(load, named) for named in (False, True) for load in (load_file, load_dcp)]))
`) as unknown[][];
    expect(loaded![1]).toMatchObject({ step: 8, exp_avg: [expect.closeTo(2.8), expect.closeTo(3.7)] });
    expect(loaded!.slice(2)).toEqual([0.5, 0.25]);
    expect(others).toEqual([loaded, loaded, loaded]);
  });

  it.each([
    [
      "with the lr with which the schedule began",
      { schedule: { kind: "StepLR", lastEpoch: 3, baseLrs: [2], lr: [0.5] } },
      2,
    ],
    ["without a schedule with its lr", { other: { baseLrs: [2], lr: [0.25] } }, 0.5],
  ])("an optimizer there that has a schedule takes what was trained here, %s", async (_, more, initialLr) => {
    const [run, file, folder] = ["run", "run.pt", "dcp"].map((name) => join(scratch.path, `${initialLr}-${name}`));
    const { values, ...contents } = trained();
    await saveCheckpoint(run!, { ...contents, values: { ...values, ...more } });
    await convertCheckpoint(run!, file!, { to: "pt" });
    await convertCheckpoint(run!, folder!, { to: "dcp" });
    const loaded = inPython(`${MODEL}result = []
for named in (False, True):
    model = Model()
    optimizer = torch.optim.AdamW(model.named_parameters() if named else model.parameters(), lr=9.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    m, o = get_state_dict(model, optimizer)
    state = {"model": m, "optim": o}
    dcp.load(state, checkpoint_id="${initialLr}-dcp", no_dist=True)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    result.append([optimizer.param_groups[0][key] for key in ("lr", "initial_lr")])
optimizer = torch.optim.AdamW(Model().parameters(), lr=9.0)
optimizer.load_state_dict(torch.load("${initialLr}-run.pt")["optimizer"])
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10, last_epoch=3)
result.append([optimizer.param_groups[0]["lr"], schedule.base_lrs[0]])
print(json.dumps(result))
`);
    expect(loaded).toEqual(new Array(3).fill([0.5, initialLr]));
  });

  it("an FSDP2 run of four processes: DCP, here, three ranks, DCP; resumed, it computes the same bits", async () => {
    const script = torchFile("fsdp2.py");
    runPython(script, scratch.path, "save", "4", ".");
    for (const form of ["nested", "flat"]) {
      const [ours, three, back] = ["ours", "three", "back"].map((name) => join(scratch.path, `${form}-${name}`));
      await convertCheckpoint(join(scratch.path, form), ours!, { to: "checkpoint" });
      await reshardCheckpoint(ours!, three!, { ranks: 3 });
      await convertCheckpoint(three!, back!, { to: "dcp" });
      expect(runPython(script, scratch.path, "compare", "4", form, form, `${form}-back`)).toContain("equal");
    }
  });
});
