import { expectCode, seededArray } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { init } from "../device/registry";
import { tidy } from "../device/scope";
import { fma64 } from "../rule/fma";
import { ExponentialMovingAverage } from "./moving-average";
import type { WeightAverageState } from "./weight-average";

const device = await init("js");

const averageOf = (ema: ExponentialMovingAverage, name = "0") => [
  ...(ema.stateDict()[`module.${name}`] as ReturnType<typeof tensor>).dataSync(),
];

it("the first update copies, later ones move by 1 - decay", () => {
  const w = parameter([0, 8]);
  const ema = new ExponentialMovingAverage([w], { decay: 0.75 });
  w.set([4, 4]);
  ema.update();
  w.set([8, 0]);
  ema.update();
  expect(averageOf(ema)).toEqual([5, 3]);
});

describe.each(["f32", "f64"] as const)("in %s", (dtype) => {
  const round = dtype === "f32" ? Math.fround : (x: number) => x;

  it.each([0, 0.3, 0.5, 0.75, 0.999])("moves from the nearer end, in few roundings: decay %s", (decay) => {
    const [first, second] = [seededArray("f32", 99, { seed: 1 }), seededArray("f32", 99, { seed: 2 })];
    const w = parameter(first, { dtype });
    const ema = new ExponentialMovingAverage([w], { decay });
    ema.update();
    w.set(second);
    ema.update();
    const weight = round(1 - decay);
    const fma = dtype === "f32" ? (a: number, b: number, c: number) => Math.fround(a * b + c) : fma64;
    const expected = Array.from(first, (average, i) => {
      const way = round(second[i]! - average);
      return weight < 0.5 ? fma(weight, way, average) : fma(round(weight - 1), way, second[i]!);
    });
    expect(averageOf(ema)).toEqual(expected);
  });
});

it("averages 16-bit parameters in float32", () => {
  const w = parameter([1], { dtype: "bf16" });
  const ema = new ExponentialMovingAverage([w], { decay: 0.999 });
  ema.update();
  w.set([2]);
  for (let i = 0; i < 3; i++) ema.update();
  expect(averageOf(ema)[0]).toBeCloseTo(2 - 0.999 ** 3, 6);
});

it("averaged shows the averages and gives the parameters back: after a value, an error, a promise, a rejection", async () => {
  const w = parameter([1]);
  const ema = new ExponentialMovingAverage([w], { decay: 0.5 });
  ema.update();
  w.set([3]);
  ema.update();
  const seen = () => w.dataSync()[0];
  expect([ema.averaged(seen), seen()]).toEqual([2, 3]);
  const failing = () => {
    throw new RangeError("in body");
  };
  expect(() => ema.averaged(failing)).toThrow(RangeError);
  expect(seen()).toBe(3);
  const later = ema.averaged(async () => {
    await Promise.resolve();
    return seen();
  });
  expectCode("BAD_STATE", () => ema.averaged(seen));
  expectCode("BAD_STATE", () => ema.update());
  expect([await later, seen()]).toEqual([2, 3]);
  await expect(ema.averaged(async () => failing())).rejects.toThrow(RangeError);
  expect(seen()).toBe(3);
});

it("is compiled with a step, from its first update on; making averages and averaged() are rejected inside", () => {
  const start = () => {
    const w = parameter([1, 2]);
    const optimizer = new Momentum([w], { lr: 0.1 });
    const ema = new ExponentialMovingAverage([w], { decay: 0.9 });
    const body = () => {
      optimizer.zeroGrad();
      w.mul(w).sum().backward();
      optimizer.step();
      ema.update();
    };
    return { ema, body };
  };
  const [eager, compiled] = [start(), start()];
  const step = compile(compiled.body);
  const both = (count: number) => {
    for (let i = 0; i < count; i++) {
      eager.body();
      step();
    }
    expect(averageOf(compiled.ema)).toEqual(averageOf(eager.ema));
    expect(compiled.ema.stateDict().n_averaged).toBe(eager.ema.stateDict().n_averaged);
  };
  both(6);
  expectCode("BAD_STATE", () => compiled.ema.averaged(step));
  for (const { ema } of [eager, compiled]) ema.loadStateDict({ ...ema.stateDict(), n_averaged: 0 }); // the next update copies
  both(5);
  const make = compile(() => {
    new ExponentialMovingAverage([parameter([1])]);
  });
  expectCode("UNSUPPORTED", make);
  expectCode(
    "UNSUPPORTED",
    compile(() => compiled.ema.averaged(() => 0)),
  );
});

it("is saved and loaded, also from a tensor's count, and rejects what does not fit before it changes", () => {
  const [a, b] = [parameter([1, 2]), parameter([5, 6])];
  const [saved, loaded] = [new ExponentialMovingAverage([a]), new ExponentialMovingAverage([b])];
  saved.update();
  const state = saved.stateDict();
  const wrong: unknown[] = [
    null,
    {},
    { n_averaged: 0.5, "module.0": tensor([1, 2]) },
    { n_averaged: -1, "module.0": tensor([1, 2]) },
    { n_averaged: tensor([1, 2]), "module.0": tensor([1, 2]) },
    { n_averaged: 1 },
    { n_averaged: 1, "module.0": tensor([1]) },
  ];
  for (const each of wrong) expectCode("BAD_STATE", () => loaded.loadStateDict(each as WeightAverageState));
  expect([averageOf(loaded), loaded.stateDict().n_averaged]).toEqual([[5, 6], 0]);
  loaded.loadStateDict({ ...state, n_averaged: tensor(1, { dtype: "i32" }) });
  expect([averageOf(loaded), loaded.stateDict().n_averaged]).toEqual([[1, 2], 1]);
  saved.dispose();
  expect(averageOf(loaded)).toEqual([1, 2]);
  loaded.loadStateDict({ n_averaged: 0, "module.0": tensor([3, 4]) });
  expect([averageOf(loaded), loaded.stateDict().n_averaged]).toEqual([[3, 4], 0]);
});

it("outlives tidy, and leaves nothing behind", () => {
  const before = device.memory().tensors;
  const w = parameter([1, 2]);
  const ema = tidy(() => new ExponentialMovingAverage([w], { decay: 0 }));
  tidy(() => {
    for (let i = 0; i < 3; i++) ema.update();
  });
  ema.averaged(() => w.dataSync());
  ema.loadStateDict(ema.stateDict());
  expect(averageOf(ema)).toEqual([1, 2]);
  ema.dispose();
  w.dispose();
  expect(device.memory().tensors).toBe(before);
});

it.each<[string, unknown, object]>([
  ["no list", 1, {}],
  ["decay above 1", [parameter([1])], { decay: 1.5 }],
  ["decay below 0", [parameter([1])], { decay: -0.1 }],
  ["decay NaN", [parameter([1])], { decay: Number.NaN }],
  ["an unknown option", [parameter([1])], { momentum: 0.9 }],
])("rejects %s", (_, params, options) => {
  expectCode("BAD_ARGUMENT", () => new ExponentialMovingAverage(params as never, options));
});

it("takes nothing, several, and a decay of 1, and rejects one name twice", () => {
  new ExponentialMovingAverage([]).update();
  const ema = new ExponentialMovingAverage([parameter([1]), parameter([2])], { decay: 1 });
  for (let i = 0; i < 2; i++) ema.update();
  expect([averageOf(ema), averageOf(ema, "1")]).toEqual([[1], [2]]);
  expectCode("BAD_ARGUMENT", () => ema.averaged(1 as never));
  const w = parameter([1], { name: "w" });
  expectCode("DUPLICATE", () => new ExponentialMovingAverage([w, w]));
});

it("averaged() leaves the master copies of 16-bit parameters alone, whoever looks at them inside, and no memory", () => {
  const run = (look: boolean) => {
    const w = parameter([1, 2, 3], { dtype: "bf16" });
    const optimizer = new Momentum([w], { lr: 1e-3 });
    const ema = new ExponentialMovingAverage([w], { decay: 0.5 });
    const step = (t: number) => {
      w.grad = tensor([Math.sin(t), 1, -1], { dtype: "bf16" });
      optimizer.step();
      ema.update();
    };
    for (let t = 0; t < 5; t++) step(t);
    const before = device.memory();
    if (look) ema.averaged(() => optimizer.stateDict());
    expect(device.memory()).toEqual(before);
    step(5);
    return [...(optimizer.stateDict().state["0"]!.master_param as ReturnType<typeof tensor>).dataSync()];
  };
  expect(run(true)).toEqual(run(false));
});

it("averaged() gives back the parameters that are still there, whose copies follow what is set afterwards", () => {
  const [w, v] = [parameter([1], { dtype: "bf16" }), parameter([2])];
  const optimizer = new Momentum([w], { lr: 0.5, momentum: 0 });
  w.grad = tensor([1], { dtype: "bf16" });
  optimizer.step();
  const ema = new ExponentialMovingAverage([w, v]);
  ema.averaged(() => v.dispose());
  w.set([4]);
  optimizer.step();
  expect([...w.dataSync()]).toEqual([3.5]);
  const average = ema.stateDict()["module.0"]!;
  ema[Symbol.dispose]();
  expect(average.isDisposed).toBe(true);
});

it("a step inside of averaged(), which would be put back, is rejected, eager and compiled", async () => {
  const w = parameter([1]);
  const optimizer = new Momentum([w]);
  const ema = new ExponentialMovingAverage([w], { decay: 0.5 });
  const body = () => {
    w.mul(2).sum().backward();
    optimizer.step();
    optimizer.zeroGrad();
  };
  const step = compile(body);
  for (let i = 0; i < 3; i++) step();
  ema.update();
  const rejected = () => {
    expectCode("BAD_STATE", step);
    expectCode("BAD_STATE", body);
    optimizer.zeroGrad();
  };
  ema.averaged(rejected);
  const evaluation = ema.averaged(() => Promise.resolve());
  rejected();
  await evaluation;
  body();
  step();
  expect(optimizer.stateDict().state["0"]!.step).toBe(5);
});

it("averaged() awaits whatever can be awaited", async () => {
  const w = parameter([1]);
  const ema = new ExponentialMovingAverage([w]);
  w.set([5]);
  // biome-ignore lint/suspicious/noThenProperty: a promise of another library
  const other = { then: (resolve: (value: number) => void) => queueMicrotask(() => resolve(w.dataSync()[0]!)) };
  expect([await ema.averaged(() => other), w.dataSync()[0]]).toEqual([1, 5]);
});

it("averages of parts are parts of the same whole, as checkpoints must know", () => {
  const part = parameter([1, 2]);
  part.placement = { shape: [4], cuts: [{ axis: { name: "data", size: 2, index: 1 } as never, dim: 0 }] };
  const averages = new ExponentialMovingAverage([part, parameter([3])]).stateDict();
  expect((averages["module.0"] as ReturnType<typeof tensor>).placement).toBe(part.placement);
  expect((averages["module.1"] as ReturnType<typeof tensor>).placement).toBeNull();
});

it("steps stay rejected after averages within averages", () => {
  const w = parameter([1]);
  w.grad = tensor([1]);
  const optimizer = new Momentum([w], { lr: 0.1 });
  const [outer, inner] = [new ExponentialMovingAverage([w]), new ExponentialMovingAverage([w])];
  outer.averaged(() => {
    inner.averaged(() => {});
    expectCode("BAD_STATE", () => optimizer.step());
  });
  optimizer.step();
});
