// Runs that PyTorch saved go on here, and there again: each optimizer's state by name, SGD's without a count of steps.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Adadelta } from "@opt/adadelta";
import { Adafactor } from "@opt/adafactor";
import { Adagrad } from "@opt/adagrad";
import { Adam } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import { ASGD } from "@opt/asgd";
import { type Optimizer, type Parameters, parameter, tensor } from "@opt/core";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { Rprop } from "@opt/rprop";
import { SGD } from "@opt/sgd";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { python, runPython, withTorch } from "../../../testing/files/torch-files";
import { convertCheckpoint, loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from "../../index";

const TRAIN = `
import json, sys, torch
runs = json.loads(sys.argv[1])
weight = lambda: torch.nn.Parameter(torch.tensor([[0.5, -1.0, 2.0], [0.1, 0.0, -3.0]]))
def step(model, optimizer, s):
    model.w.grad = torch.sin(torch.arange(6.0) * (s + 1)).reshape(2, 3)
    optimizer.step()
`;
const SAVE = `
result = []
for i, (name, options) in enumerate(runs):
    model = torch.nn.Module(); model.w = weight()
    optimizer = getattr(torch.optim, name)([("w", model.w)] if i % 2 else [model.w], **options)
    for s in range(7): step(model, optimizer, s)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{i}.pt")
    for s in range(7, 12): step(model, optimizer, s)
    there = model.w.flatten().tolist()
    for s in range(12, 15): step(model, optimizer, s)
    result.append([there, model.w.flatten().tolist()])
print(json.dumps(result))
`;
const GO_ON = `
result = []
for i, (name, options) in enumerate(runs):
    model = torch.nn.Module(); model.w = weight()
    optimizer = getattr(torch.optim, name)([("w", model.w)], **({"momentum": 0.5} if name == "SGD" else {}))
    saved = torch.load(f"{i}-back.pt")
    model.load_state_dict(saved["model"]); optimizer.load_state_dict(saved["optimizer"])
    for s in range(12, 15): step(model, optimizer, s)
    result.append(model.w.flatten().tolist())
print(json.dumps(result))
`;

type Make = (params: Parameters) => Optimizer<never>;
const RUNS: [string, object, Make][] = [
  ["SGD", { lr: 0.1, momentum: 0.9, dampening: 0.3 }, (params) => new SGD(params) as never],
  ["SGD", { lr: 0.1, weight_decay: 0.1 }, (params) => new SGD(params) as never],
  ["SGD", { lr: 0.2 }, (params) => new SGD(params) as never],
  ["SGD", { lr: 0.1, momentum: 0.9, nesterov: true }, (params) => new SGD(params) as never],
  ["RMSprop", { lr: 0.01, momentum: 0.9, centered: true }, (params) => new RMSprop(params) as never],
  ["Adamax", { lr: 0.01, weight_decay: 0.1 }, (params) => new Adamax(params) as never],
  ["NAdam", { lr: 0.01, weight_decay: 0.1 }, (params) => new NAdam(params) as never],
  ["Adam", { lr: 0.01, amsgrad: true }, (params) => new Adam(params) as never],
  ["Muon", { lr: 0.01, ns_steps: 4, adjust_lr_fn: "match_rms_adamw" }, (params) => new Muon(params) as never],
  ["Muon", { lr: 0.01, nesterov: false }, (params) => new Muon(params) as never],
  ["RAdam", { lr: 0.01, decoupled_weight_decay: true, weight_decay: 0.1 }, (params) => new RAdam(params) as never],
  ["Adagrad", { lr: 0.1, lr_decay: 0.1, initial_accumulator_value: 0.5 }, (params) => new Adagrad(params) as never],
  ["Adadelta", { lr: 2, rho: 0.8, weight_decay: 0.1 }, (params) => new Adadelta(params) as never],
  ["ASGD", { lr: 0.1, lambd: 0.01, t0: 9 }, (params) => new ASGD(params) as never],
  ["Adafactor", { lr: 0.1, weight_decay: 0.1 }, (params) => new Adafactor(params) as never],
  ["Adafactor", { lr: 0.1, eps: [0.1, 0.5], d: 2 }, (params) => new Adafactor(params) as never],
  ["Rprop", { lr: 0.1, etas: [0.25, 1.5], step_sizes: [1e-3, 2] }, (params) => new Rprop(params) as never],
];

describe.skipIf(python === undefined)(withTorch, () => {
  let expected: [number[], number[]][] = [];
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "opt-torch-optimizers-"));
    expected = inTorch(SAVE) as typeof expected;
  });
  const inTorch = (script: string) =>
    JSON.parse(runPython(TRAIN + script, folder, JSON.stringify(RUNS.map(([name, options]) => [name, options]))));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(RUNS.map((run, i) => [i, ...run] as const))("%d: %s %o goes on", async (i, _name, _options, make) => {
    await convertCheckpoint(join(folder, `${i}.pt`), join(folder, `${i}`), { to: "checkpoint" });
    const loaded = await loadCheckpoint(join(folder, `${i}`));
    const w = parameter(loaded.tensors.w!.dataSync(), { shape: [2, 3], name: "w" });
    const optimizer = make([["w", w]]);
    optimizer.loadStateDict(optimizerState(loaded));
    for (let s = 7; s < 12; s++) {
      w.grad = tensor(
        Array.from({ length: 6 }, (_, k) => Math.sin(k * (s + 1))),
        { shape: [2, 3] },
      );
      optimizer.step();
    }
    for (const [k, x] of w.dataSync().entries()) expect(Math.abs(x - expected[i]![0][k]!)).toBeLessThan(1e-6);
    const { tensors, values } = optimizerContents(optimizer.stateDict());
    await saveCheckpoint(join(folder, `${i}-ours`), { step: 12, tensors: { w, ...tensors }, values });
    await convertCheckpoint(join(folder, `${i}-ours`), join(folder, `${i}-back.pt`), { to: "pt" });
  });

  it("and there again", () => {
    const there = inTorch(GO_ON) as number[][];
    for (const [i, weights] of there.entries()) {
      for (const [k, x] of weights.entries()) expect(Math.abs(x - expected[i]![1][k]!)).toBeLessThan(2e-6);
    }
  });
});
