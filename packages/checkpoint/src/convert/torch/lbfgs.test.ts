// LBFGS' state has lists and numbers of float64. A run that PyTorch saved goes on here, and there again.
import { join } from "node:path";
import { parameter, tensor } from "@opt/core";
import { LBFGS } from "@opt/lbfgs";
import { describe, expect, it } from "vitest";
import { python, runPython, withTorch } from "../../../testing/files/torch-files";
import { scratchFolder } from "../../../testing/fixtures";
import { convertCheckpoint, loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from "../../index";

const scratch = scratchFolder();
const START = [-1.2, 1, 0.5, -0.3];

/** Two parameters in float64, and the first steps. */
function training(options: Partial<ConstructorParameters<typeof LBFGS>[1]> = {}) {
  const w = parameter(START.slice(0, 3), { dtype: "f64" });
  const b = parameter(START.slice(3), { dtype: "f64" });
  const optimizer = new LBFGS(
    [
      ["w", w],
      ["b", b],
    ] as const,
    options,
  );
  const step = () =>
    optimizer.step(() => {
      optimizer.zeroGrad();
      const loss = w
        .mul(w)
        .sub(tensor([1, 2, 3], { dtype: "f64" }))
        .pow(2)
        .sum()
        .add(b.mul(b).mul(w.slice(0, 1)).sum());
      loss.backward();
      return loss;
    });
  const values = () => [...w.dataSync(), ...b.dataSync()];
  const save = async (path: string) => {
    const { tensors, values } = optimizerContents(optimizer.stateDict());
    await saveCheckpoint(path, { step: 1, tensors: { w, b, ...tensors }, values });
  };
  const load = async (path: string) => {
    const loaded = await loadCheckpoint(path);
    for (const [name, param] of Object.entries({ w, b })) param.set(loaded.tensors[name]!);
    optimizer.loadStateDict(optimizerState(loaded));
  };
  return { optimizer, step, values, save, load };
}

const RUNS = [
  [
    { lr: 0.05, maxIter: 3, historySize: 4 },
    { lr: 0.05, max_iter: 3, history_size: 4 },
  ],
  [
    { lineSearch: "strongWolfe", maxIter: 1 },
    { line_search_fn: "strong_wolfe", max_iter: 1 },
  ],
] as const;

it.each(RUNS)("goes on with the same numbers after a checkpoint, and after PyTorch's file: %o", async (options) => {
  const path = join(scratch.path, `ours-${options.maxIter}`);
  const [run, resumed, converted] = [training(options), training(), training()];
  await run.step();
  await run.save(path);
  await resumed.load(path);
  await convertCheckpoint(path, `${path}.pt`, { to: "pt" });
  await convertCheckpoint(`${path}.pt`, `${path}-back`, { to: "checkpoint" });
  await converted.load(`${path}-back`);
  for (const each of [run, resumed, converted]) for (let i = 0; i < 3; i++) await each.step();
  expect(resumed.values()).toEqual(run.values());
  expect(converted.values()).toEqual(run.values());
  expect(converted.optimizer.groups[0]).toMatchObject(options);
});

const PROGRAM = `
import json, sys, torch
torch.set_num_threads(1)
path, go_on, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
start = ${JSON.stringify(START)}
model = torch.nn.Module()
model.w = torch.nn.Parameter(torch.tensor(start[:3], dtype=torch.float64))
model.b = torch.nn.Parameter(torch.tensor(start[3:], dtype=torch.float64))
optimizer = torch.optim.LBFGS(model.named_parameters(), **({} if go_on == "on" else options))
def closure():
    optimizer.zero_grad()
    loss = ((model.w * model.w - torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)) ** 2).sum() + (model.b * model.b * model.w[:1]).sum()
    loss.backward()
    return loss
if go_on == "on":
    saved = torch.load(path)
    model.load_state_dict(saved["model"]); optimizer.load_state_dict(saved["optimizer"])
else:
    for _ in range(2): optimizer.step(closure)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
trace = []
for _ in range(5):
    optimizer.step(closure)
    trace.append(model.w.tolist() + model.b.tolist())
print(json.dumps(trace))
`;

describe.skipIf(python === undefined)(withTorch, () => {
  it.each(RUNS)("goes on from PyTorch's file, and there again: %o", async (options, theirs) => {
    const path = join(scratch.path, `theirs-${options.maxIter}`);
    const inTorch = (file: string, how: string): number[][] =>
      JSON.parse(runPython(PROGRAM, scratch.path, file, how, JSON.stringify(theirs)));
    const expected = inTorch(`${path}.pt`, "from the start");
    await convertCheckpoint(`${path}.pt`, path, { to: "checkpoint" });
    const run = training();
    await run.load(path);
    expect(run.optimizer.groups[0]).toMatchObject(options);
    for (const values of expected.slice(0, 2)) {
      await run.step();
      for (const [i, x] of run.values().entries()) expect(Math.abs(x - values[i]!)).toBeLessThan(1e-9);
    }
    await run.save(`${path}-ours`);
    await convertCheckpoint(`${path}-ours`, `${path}-back.pt`, { to: "pt" });
    for (const [k, values] of inTorch(`${path}-back.pt`, "on").slice(0, 3).entries()) {
      for (const [i, x] of values.entries()) expect(Math.abs(x - expected[k + 2]![i]!)).toBeLessThan(1e-9);
    }
  });
});
