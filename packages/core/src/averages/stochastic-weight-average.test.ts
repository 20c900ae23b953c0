// Equal-weight averages: PyTorch's AveragedModel without an averaging function.
import { execFileSync } from "node:child_process";
import { expectCode, seededArray, torchPython, withoutTorch } from "@opt/testkit";
import { expect, it } from "vitest";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { init } from "../device/registry";
import type { Tensor } from "../tensor/tensor";
import { StochasticWeightAverage } from "./stochastic-weight-average";

const device = await init("js");
const UPDATES = 9;
const values = (n: number) => [...seededArray("f32", 5, { seed: n })];
const counts = (n: number) => [0, 7 * n, 1000 - 300 * n];

function begin(useBuffers?: boolean) {
  const tensors: [string, Tensor][] = [
    ["w", parameter(values(0))],
    ["v", parameter(values(0), { dtype: "f64" })],
    ["mean", tensor(values(0))],
    ["count", tensor(Int32Array.from(counts(0)))],
  ];
  const swa = new StochasticWeightAverage(tensors, { useBuffers });
  const fill = (n: number) => {
    const next = [values(n), values(n), values(n + 20), counts(n)];
    tensors.forEach(([, x], i) => {
      x.set(next[i]!);
    });
  };
  const read = () => {
    const { n_averaged, ...averages } = swa.stateDict();
    return Object.entries(averages).map(([name, x]) => [name, [...x.dataSync()]]);
  };
  return { swa, fill, read, update: () => swa.update() };
}

function run(useBuffers: boolean | undefined) {
  const { fill, read, update } = begin(useBuffers);
  return Array.from({ length: UPDATES }, (_, n) => {
    fill(n);
    update();
    return read();
  });
}

const torchProgram = `
import json, sys, torch
from torch.optim.swa_utils import AveragedModel
values, counts, use_buffers = json.load(sys.stdin)
model = torch.nn.Module()
model.w = torch.nn.Parameter(torch.tensor(values[0])); model.v = torch.nn.Parameter(torch.tensor(values[0], dtype=torch.float64))
model.register_buffer("mean", torch.tensor(values[0])); model.register_buffer("count", torch.tensor(counts[0], dtype=torch.int32))
swa = AveragedModel(model, use_buffers=use_buffers)
trace = []
for n in range(len(counts)):
    with torch.no_grad():
        model.w.copy_(torch.tensor(values[n])); model.v.copy_(torch.tensor(values[n], dtype=torch.float64))
        model.mean.copy_(torch.tensor(values[n + 20])); model.count.copy_(torch.tensor(counts[n]))
    swa.update_parameters(model)
    state = swa.state_dict()
    trace.append([["module." + name, state["module." + name].tolist()] for name in ("w", "v", "mean", "count")])
print(json.dumps(trace))
`;

it.skipIf(torchPython === undefined).each([true, false])(
  `has the bits of torch's AveragedModel, useBuffers: %s${withoutTorch}`,
  (useBuffers) => {
    const upTo = <T>(count: number, value: (n: number) => T) => Array.from({ length: count }, (_, n) => value(n));
    const input = JSON.stringify([upTo(29, values), upTo(UPDATES, counts), useBuffers]);
    const expected = JSON.parse(execFileSync(torchPython as string, ["-c", torchProgram], { input, encoding: "utf8" }));
    expect(run(useBuffers)).toEqual(expected);
  },
);

it("is the mean of what it saw, of f32 with one rounding for each of three operations, and copies buffers", () => {
  const trace = run(undefined);
  let average = values(0);
  for (let n = 1; n < UPDATES; n++) {
    const next = values(n);
    average = average.map((a, i) => Math.fround(a + Math.fround(Math.fround(next[i]! - a) / (n + 1))));
  }
  const means = values(0).map((_, i) => {
    let sum = 0;
    for (let n = 0; n < UPDATES; n++) sum += values(n)[i]!;
    return sum / UPDATES;
  });
  const [w, v, mean, count] = trace.at(-1)! as [string, number[]][];
  expect(w![1]).toEqual(average);
  v![1].forEach((value, i) => {
    expect(value).toBeCloseTo(means[i]!, 14);
  });
  expect([mean![1], count![1]]).toEqual([values(UPDATES - 1 + 20), counts(UPDATES - 1)]);
});

it("compiled updates count, and go on from a saved state with the bits of a run that never stopped", () => {
  const [eager, compiled] = [begin(true), begin(true)];
  const update = compile(compiled.update);
  for (let n = 0; n < 6; n++) {
    for (const each of [eager, compiled]) each.fill(n);
    eager.update();
    update();
  }
  expect(compiled.read()).toEqual(eager.read());
  const resumed = begin(true);
  resumed.swa.loadStateDict(compiled.swa.stateDict());
  const resumedUpdate = compile(resumed.update);
  for (let n = 6; n < UPDATES; n++) {
    for (const each of [eager, compiled, resumed]) each.fill(n);
    eager.update();
    update();
    resumedUpdate();
  }
  expect([compiled.read(), resumed.read()]).toEqual([eager.read(), eager.read()]);
  expect(resumed.swa.stateDict().n_averaged).toBe(UPDATES);
  compiled.swa.loadStateDict({ ...compiled.swa.stateDict(), n_averaged: 1 });
  update();
  eager.swa.loadStateDict({ ...eager.swa.stateDict(), n_averaged: 1 });
  eager.update();
  expect(compiled.read()).toEqual(eager.read());
});

it("a state that does not fit changes nothing; the parameters stand in while averaged; it leaves no memory", () => {
  const before = device.memory().tensors;
  const w = parameter([2]);
  const swa = new StochasticWeightAverage([w]);
  swa.update();
  w.set([4]);
  expectCode("BAD_STATE", () => swa.loadStateDict({ n_averaged: 5, "module.0": tensor([1, 2]) }));
  swa.update();
  expect([swa.averaged(() => w.dataSync()[0]), w.dataSync()[0]]).toEqual([3, 4]);
  expectCode("BAD_ARGUMENT", () => new StochasticWeightAverage([w], { decay: 0.5 } as never));
  expectCode("BAD_ARGUMENT", () => new StochasticWeightAverage(1 as never));
  swa.dispose();
  w.dispose();
  expect(device.memory().tensors).toBe(before + 1); // the state that did not fit
});
