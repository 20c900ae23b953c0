// Averages of a module's buffers: copied at each update, or averaged, as torch's AveragedModel.
import { execFileSync } from "node:child_process";
import { expectCode, seededArray, torchPython, withoutTorch } from "@opt/testkit";
import { expect, it } from "vitest";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import type { Tensor } from "../tensor/tensor";
import { ExponentialMovingAverage } from "./moving-average";

const values = (n: number) => [...seededArray("f32", 5, { seed: n })];
const counts = (n: number) => [0, 7 * n, 1000 - 300 * n];

/** The averages after each of nine updates. */
function run(useBuffers: boolean | undefined) {
  const tensors: [string, Tensor][] = [
    ["w", parameter(values(0))],
    ["mean", tensor(values(0))],
    ["count", tensor(Int32Array.from(counts(0)))],
  ];
  const ema = new ExponentialMovingAverage(tensors, { decay: 0.7, useBuffers });
  const trace = [];
  for (let n = 0; n < 9; n++) {
    const next = [values(n), values(n + 20), counts(n)];
    tensors.forEach(([, x], i) => {
      x.set(next[i]!);
    });
    ema.update();
    const { n_averaged, ...averages } = ema.stateDict();
    trace.push(Object.entries(averages).map(([name, x]) => [name, x.dtype, [...x.dataSync()]]));
  }
  return { trace, ema, tensors };
}

const torchProgram = `
import json, sys, torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
values, counts, use_buffers = json.load(sys.stdin)
model = torch.nn.Module(); model.w = torch.nn.Parameter(torch.tensor(values[0]))
model.register_buffer("mean", torch.tensor(values[0])); model.register_buffer("count", torch.tensor(counts[0], dtype=torch.int32))
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.7), use_buffers=use_buffers)
names = {torch.float32: "f32", torch.int32: "i32"}
trace = []
for n in range(9):
    with torch.no_grad():
        model.w.copy_(torch.tensor(values[n])); model.mean.copy_(torch.tensor(values[n + 20])); model.count.copy_(torch.tensor(counts[n]))
    ema.update_parameters(model)
    state = ema.state_dict()
    trace.append([["module." + name, names[state["module." + name].dtype], state["module." + name].tolist()] for name in ("w", "mean", "count")])
print(json.dumps(trace))
`;

it.skipIf(torchPython === undefined).each([true, false])(
  `useBuffers: %s is as torch's${withoutTorch}`,
  (useBuffers) => {
    const upTo = <T>(count: number, value: (n: number) => T) => Array.from({ length: count }, (_, n) => value(n));
    const input = JSON.stringify([upTo(29, values), upTo(9, counts), useBuffers]);
    const expected = JSON.parse(execFileSync(torchPython as string, ["-c", torchProgram], { input, encoding: "utf8" }));
    expect(run(useBuffers).trace).toEqual(expected);
  },
);

it("copies what requires no gradient unless told otherwise; all stand in while averaged", () => {
  const { trace, ema, tensors } = run(undefined);
  const [w, mean, count] = trace.at(-1)!;
  expect([mean, count]).toEqual([
    ["module.mean", "f32", values(28)],
    ["module.count", "i32", counts(8)],
  ]);
  tensors[2]![1].set([1, 2, 3]);
  const seen = ema.averaged(() => tensors.map(([, x]) => [...x.dataSync()]));
  expect(seen).toEqual([w![2], values(28), counts(8)]);
  expect([...tensors[2]![1].dataSync()]).toEqual([1, 2, 3]);
});

it("a parameter that was frozen at first, or is frozen later, is averaged", () => {
  const [late, early] = [parameter([0]), parameter([0])];
  late.requiresGrad = false;
  const ema = new ExponentialMovingAverage([late, early], { decay: 0.5 });
  ema.update();
  late.requiresGrad = true;
  early.requiresGrad = false;
  for (const x of [late, early]) x.set([2]);
  ema.update();
  expect(["0", "1"].map((name) => ema.stateDict()[`module.${name}`]!.dataSync()[0])).toEqual([1, 1]);
});

it("buffers are copied by each compiled update; unknown kinds are rejected", () => {
  const [w, mean] = [parameter([1]), tensor([1])];
  const ema = new ExponentialMovingAverage([w, mean]);
  ema.update();
  const update = compile(() => {
    mean.set(w.mul(2));
    ema.update();
  });
  for (const value of [2, 3, 4, 5]) {
    w.set([value]);
    update();
  }
  expect(ema.stateDict()["module.1"]!.dataSync()[0]).toBe(10);
  expectCode("BAD_ARGUMENT", () => new ExponentialMovingAverage([w], { useBuffers: 1 } as never));
  expectCode("BAD_ARGUMENT", () => new ExponentialMovingAverage([{ w }] as never));
});
