// Schedules that drive a real optimizer, to wherever rounding or several groups may lead it.
import { describe, expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import { make } from "../../testing/schedules/make";
import { parameter, tensor } from "../create";
import { ChainedScheduler, ConstantLR, CyclicLR, LinearLR, LinearWarmupLR, OneCycleLR, StepLR } from "./index";

const f64 = (value = 0) => parameter([value], { dtype: "f64" });

describe("a rate that rounding takes below 0", () => {
  it("is stepped by, saved and loaded, as in PyTorch", () => {
    const w = f64();
    const optimizer = new Momentum([w], { lr: 0.1, momentum: 0 });
    const schedule = new LinearLR(optimizer, { startFactor: 1 / 3, endFactor: 0, totalIters: 4 });
    for (let epoch = 0; epoch < 6; epoch++) {
      w.grad = tensor([1], { dtype: "f64" });
      optimizer.step();
      schedule.step();
    }
    const { lr } = optimizer.groups[0]!;
    expect([lr < 0, lr]).toEqual([true, -1.8503717077085946e-18]); // PyTorch 2.13's number
    const restored = new Momentum([f64()]);
    restored.loadStateDict(JSON.parse(JSON.stringify({ ...optimizer.stateDict(), state: {} })));
    expect(restored.groups[0]!.lr).toBe(lr);
    restored.step();
  });
});

it.each([
  ["given", { startLr: [0, 0.5], endLr: [1, 2.5] }],
  ["the groups' base lr", { startLr: [0, 0.5] }],
])("LinearWarmupLR raises each group's lr to its own end: %s", (_, options) => {
  const optimizer = new Momentum([
    { params: f64(), lr: 1 },
    { params: f64(), lr: 2.5 },
  ]);
  const schedule = new LinearWarmupLR(optimizer, { warmupSteps: 4, ...options });
  const trace = Array.from({ length: 6 }, () => {
    const now = optimizer.groups.map(({ lr }) => lr);
    schedule.step();
    return now;
  });
  expect(trace).toEqual([
    [0, 0.5],
    [0.25, 1],
    [0.5, 1.5],
    [0.75, 2],
    [1, 2.5],
    [1, 2.5],
  ]);
});

describe("momentum of several groups", () => {
  const groups = () => [{ params: f64() }, { params: f64() }];
  const trace = (optimizer: Momentum, schedule: { step(): void }, steps: number) =>
    Array.from({ length: steps }, () => {
      const now = optimizer.groups.map(({ momentum }) => Number(momentum.toFixed(12)));
      schedule.step();
      return now;
    });

  it("moves between each group's own bounds with OneCycleLR", () => {
    const optimizer = new Momentum(groups());
    const options = { totalSteps: 5, pctStart: 0.6, annealStrategy: "linear" } as const;
    const bounds = { maxLr: [1, 2], baseMomentum: [0.8, 0.1], maxMomentum: [0.9, 0.5] };
    const schedule = new OneCycleLR(optimizer, { ...options, ...bounds });
    expect(trace(optimizer, schedule, 5)).toEqual([
      [0.9, 0.5],
      [0.85, 0.3],
      [0.8, 0.1],
      [0.85, 0.3],
      [0.9, 0.5],
    ]);
    expect(schedule.lastLr.length).toBe(2);
  });

  it("moves between each group's own bounds with CyclicLR", () => {
    const optimizer = new Momentum(groups());
    const bounds = { baseLr: [0.1, 0.2], maxLr: [1, 2], baseMomentum: [0.8, 0.1], maxMomentum: [0.9, 0.5] };
    const schedule = new CyclicLR(optimizer, { ...bounds, stepSizeUp: 2 });
    expect(trace(optimizer, schedule, 4)).toEqual([
      [0.9, 0.5],
      [0.85, 0.3],
      [0.8, 0.1],
      [0.85, 0.3],
    ]);
  });

  it("is left alone where cycleMomentum is false, and by schedules that have none", () => {
    const optimizer = new Momentum(groups(), { momentum: 0.25 });
    const schedules = [
      new OneCycleLR(optimizer, { maxLr: 1, totalSteps: 5, cycleMomentum: false }),
      new CyclicLR(optimizer, { baseLr: 0.1, maxLr: 1, cycleMomentum: false }),
      new StepLR(optimizer, { stepSize: 1 }),
    ];
    for (const schedule of schedules) schedule.step();
    expect(optimizer.groups.map(({ momentum }) => momentum)).toEqual([0.25, 0.25]);
    expect(schedules.map((schedule) => "momentum" in schedule.stateDict())).toEqual([false, false, false]);
  });
});

describe("a second schedule on the same groups", () => {
  it("starts from where they began, not from what the first one made of them", () => {
    const optimizer = new Momentum([f64()], { lr: 1 });
    new ConstantLR(optimizer, { factor: 0.5, totalIters: 9 });
    const cycle = new CyclicLR(optimizer, { baseLr: 0.25, maxLr: 0.5, cycleMomentum: false });
    expect(optimizer.stateDict().groups[0]).not.toHaveProperty("initialLr");
    expect(cycle.stateDict().baseLrs).toEqual([0.25]);
  });
});

it.each<[string, Readonly<Record<string, unknown>>, readonly string[]]>([
  ["ReduceLROnPlateau", { minLr: [0.3, 0.02], patience: 0 }, ["minLr"]],
  ["CyclicLR", { baseLr: [0.1, 0.2], maxLr: [1, 2], stepSizeUp: 3, cycleMomentum: false }, ["baseLr", "maxLr"]],
  ["OneCycleLR", { maxLr: [1, 2], totalSteps: 9, cycleMomentum: false }, ["maxLr"]],
  ["SWALR", { swaLr: [0.5, 0.1], annealEpochs: 4 }, ["swaLr"]],
  ["LinearWarmupLR", { startLr: [0.01, 0.1], endLr: [0.5, 0.3], warmupSteps: 4 }, ["startLr", "endLr"]],
])("%s moves each group by its own options, as alone, and lastLr follows", (name, options, perGroup) => {
  const lrs = [1, 0.4];
  const run = (groups: { lr: number }[], given: object) => {
    const schedule = make({ groups }, name, given);
    const chained = new ChainedScheduler([schedule]);
    return [5, 5, 5, 5, 5].map((metric) => {
      if (name === "ReduceLROnPlateau") chained.observe(metric);
      else chained.step();
      expect(chained.lastLr).toEqual(groups.map(({ lr }) => lr));
      return groups.map(({ lr }) => lr);
    });
  };
  const both = run(
    lrs.map((lr) => ({ lr })),
    options,
  );
  for (const [i, lr] of lrs.entries()) {
    const own = Object.fromEntries(
      Object.entries(options).map(([key, value]) => [key, perGroup.includes(key) ? (value as number[])[i] : value]),
    );
    expect(run([{ lr }], own).flat()).toEqual(both.map((rates) => rates[i]));
  }
});
