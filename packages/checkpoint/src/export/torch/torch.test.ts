import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openForeign } from "../../import/importers";
import { underOurNames } from "../../import/names/names";
import { localCommunicators, mergeCheckpoint, saveCheckpoint } from "../../index";
import { nodeFileSystem } from "../../stores/file-system";
import { expectCode } from "../../testing/expect-code";
import { scratchFolder } from "../../testing/fixtures";
import { readFloats } from "../../testing/read-tensor";

// A Python that has torch 2.13 and safetensors.
const python = process.env.OPT_TORCH_PYTHON;

const scratch = scratchFolder();

/** Runs a script in the folder and gives what it printed as JSON. */
function inPython(script: string): unknown {
  const file = join(scratch.path, "script.py");
  writeFileSync(file, script);
  return JSON.parse(execFileSync(python!, ["-W", "ignore", file], { cwd: scratch.path, encoding: "utf8" }));
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

describe.skipIf(python === undefined)(
  `with PyTorch${python === undefined ? " (OPT_TORCH_PYTHON is not set)" : ""}`,
  () => {
    it("our shards load through HuggingFaceStorageReader, unchanged", async () => {
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

    it("its consolidation merges our shards to what we merge", async () => {
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

    it("a trained AdamW run goes over with its state under our names", async () => {
      const expected = inPython(`
import json, torch
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
optimizer = torch.optim.AdamW(model.parameters(), amsgrad=True)
for _ in range(3):
    model(torch.randn(5, 3)).square().sum().backward()
    optimizer.step()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "run.pt")
names = [name for name, _ in model.named_parameters()]
state = optimizer.state_dict()["state"]
print(json.dumps({f"{name}.{key}": value.flatten().tolist() for i, name in enumerate(names) for key, value in state[i].items()}))
`) as Record<string, number[]>;
      const run = await openForeign(join(scratch.path, "run.pt"), nodeFileSystem);
      await expectCode("BAD_STATE", underOurNames(run));
      const source = await underOurNames(run, { parameterOrder: "model" });
      expect(Object.keys(expected)).toHaveLength(6 * 4);
      for (const [name, values] of Object.entries(expected)) {
        expect([name, await readFloats(source, name)]).toEqual([name, values]);
        expect(source.tensors.get(name)).toMatchObject({ role: "state" });
      }
      await source.close();
    });

    it("a DCP folder that it saves reads to the same numbers", async () => {
      const expected = inPython(`
import json, torch
import torch.distributed.checkpoint as dcp
state = {"model": {"w": torch.randn(4, 3), "b": torch.arange(3, dtype=torch.float32)}, "epoch": 7, "betas": (0.5, 0.25)}
dcp.save(state, checkpoint_id="dcp", no_dist=True)
print(json.dumps({"w": state["model"]["w"].flatten().tolist()}))
`) as { w: number[] };
      const source = await openForeign(join(scratch.path, "dcp"), nodeFileSystem);
      expect(await readFloats(source, "model.w")).toEqual(expected.w);
      expect(await readFloats(source, "model.b")).toEqual([0, 1, 2]);
      expect(source.values).toEqual({ epoch: 7, "betas.0": 0.5, "betas.1": 0.25 });
      await source.close();
    });
  },
);
