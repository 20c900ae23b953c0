import { describe, expect, it } from "vitest";
import { type ErrorCode, OptError } from "../errors/errors";
import {
  ChainedScheduler,
  ConstantLR,
  CosineAnnealingLR,
  CosineAnnealingWarmRestarts,
  CyclicLR,
  ExponentialLR,
  InverseTimeLR,
  LambdaLR,
  LinearLR,
  LinearWarmupLR,
  MultiplicativeLR,
  MultiStepLR,
  NaturalExpLR,
  NoamLR,
  OneCycleLR,
  PiecewiseLR,
  PolynomialLR,
  ReduceLROnPlateau,
  type ScheduledOptimizer,
  SequentialLR,
  StepLR,
} from "./index";

const newOptimizer = () => ({
  groups: [
    { lr: 1, betas: [0.9, 0.999] as [number, number] },
    { lr: 2, momentum: 0.5 },
  ],
});
const other = newOptimizer();
const wrong = (value: unknown) => value as never;

function rejection(body: () => unknown): OptError {
  try {
    body();
  } catch (error) {
    if (error instanceof OptError) return error;
    throw error;
  }
  return expect.fail("nothing was rejected");
}

function expectCode(code: ErrorCode, where: string, body: () => unknown): void {
  const error = rejection(body);
  expect([error.code, error.where]).toEqual([code, where]);
  expect(error.message).toMatch(/^\[\w+\] .+ must be .+, got .+\. [A-Z].+\.$/);
}

type Make = (optimizer: ScheduledOptimizer) => unknown;
const bounds = { baseLr: 0.1, maxLr: 1 };
const steps = { maxLr: 1, totalSteps: 10 };
const step = (o: ScheduledOptimizer) => new StepLR(o, { stepSize: 2 });
const table: [string, Make[]][] = [
  [
    "StepLR",
    [
      () => new StepLR(wrong(undefined), { stepSize: 1 }),
      () => new StepLR({ groups: [{ lr: wrong("1") }] }, { stepSize: 1 }),
      (o) => new StepLR(o, wrong(undefined)),
      (o) => new StepLR(o, wrong(3)),
      (o) => new StepLR(o, { stepSize: 0 }),
      (o) => new StepLR(o, { stepSize: 1.5 }),
      (o) => new StepLR(o, { stepSize: 2, gamma: -0.1 }),
      (o) => new StepLR(o, { stepSize: 2, gamma: Number.NaN }),
    ],
  ],
  [
    "MultiStepLR",
    [
      (o) => new MultiStepLR(o, { milestones: wrong(3) }),
      (o) => new MultiStepLR(o, { milestones: wrong("12") }),
      (o) => new MultiStepLR(o, { milestones: [2, 2.5] }),
      (o) => new MultiStepLR(o, { milestones: [-1] }),
      (o) => new MultiStepLR(o, { milestones: [1], gamma: Infinity }),
    ],
  ],
  [
    "ConstantLR",
    [
      (o) => new ConstantLR(o, { factor: 1.1 }),
      (o) => new ConstantLR(o, { factor: -0.1 }),
      (o) => new ConstantLR(o, { totalIters: 0 }),
    ],
  ],
  [
    "LinearLR",
    [
      (o) => new LinearLR(o, { startFactor: 0 }),
      (o) => new LinearLR(o, { startFactor: 1.1 }),
      (o) => new LinearLR(o, { startFactor: wrong("0.5") }),
      (o) => new LinearLR(o, { endFactor: 1.1 }),
      (o) => new LinearLR(o, { totalIters: 0 }),
    ],
  ],
  ["ExponentialLR", [(o) => new ExponentialLR(o, wrong({})), (o) => new ExponentialLR(o, { gamma: -1 })]],
  [
    "PolynomialLR",
    [
      (o) => new PolynomialLR(o, { totalIters: 0 }),
      (o) => new PolynomialLR(o, { power: 0 }),
      (o) => new PolynomialLR(o, { endLr: Number.NaN }),
    ],
  ],
  [
    "CosineAnnealingLR",
    [(o) => new CosineAnnealingLR(o, { tMax: 0 }), (o) => new CosineAnnealingLR(o, { tMax: 3, etaMin: Number.NaN })],
  ],
  [
    "CosineAnnealingWarmRestarts",
    [
      (o) => new CosineAnnealingWarmRestarts(o, { t0: 0 }),
      (o) => new CosineAnnealingWarmRestarts(o, { t0: 3, tMult: 0 }),
      (o) => new CosineAnnealingWarmRestarts(o, { t0: 3, etaMin: wrong("0") }),
    ],
  ],
  [
    "CyclicLR",
    [
      (o) => new CyclicLR(o, { baseLr: [0.1], maxLr: 1 }),
      (o) => new CyclicLR(o, { baseLr: 0.1, maxLr: [1, Number.NaN] }),
      (o) => new CyclicLR(o, { ...bounds, stepSizeUp: 0 }),
      (o) => new CyclicLR(o, { ...bounds, stepSizeDown: -1 }),
      (o) => new CyclicLR(o, { ...bounds, mode: wrong("square") }),
      (o) => new CyclicLR(o, { ...bounds, scaleFn: wrong(2) }),
      (o) => new CyclicLR(o, { ...bounds, scaleFn: () => 1, scaleMode: wrong("epoch") }),
      (o) => new CyclicLR(o, { ...bounds, gamma: Number.NaN }),
      (o) => new CyclicLR(o, { ...bounds, maxMomentum: 1 }),
      () => new CyclicLR({ groups: [{ lr: 1 }] }, bounds),
    ],
  ],
  [
    "OneCycleLR",
    [
      (o) => new OneCycleLR(o, { maxLr: 1 }),
      (o) => new OneCycleLR(o, { maxLr: 1, epochs: 3 }),
      (o) => new OneCycleLR(o, { maxLr: 1, epochs: 0, stepsPerEpoch: 1 }),
      (o) => new OneCycleLR(o, { maxLr: 1, epochs: 1, stepsPerEpoch: 0.5 }),
      (o) => new OneCycleLR(o, { maxLr: 1, totalSteps: 0 }),
      (o) => new OneCycleLR(o, { ...steps, maxLr: [1, 2, 3] }),
      (o) => new OneCycleLR(o, { ...steps, pctStart: 1.1 }),
      (o) => new OneCycleLR(o, { ...steps, annealStrategy: wrong("sine") }),
      (o) => new OneCycleLR(o, { ...steps, divFactor: 0 }),
      (o) => new OneCycleLR(o, { ...steps, finalDivFactor: Number.NaN }),
      (o) => new OneCycleLR(o, { ...steps, baseMomentum: -1 }),
      () => new OneCycleLR({ groups: [{ lr: 1 }] }, steps),
    ],
  ],
  [
    "ReduceLROnPlateau",
    [
      (o) => new ReduceLROnPlateau(o, { factor: 1 }),
      (o) => new ReduceLROnPlateau(o, { mode: wrong("best") }),
      (o) => new ReduceLROnPlateau(o, { thresholdMode: wrong("both") }),
      (o) => new ReduceLROnPlateau(o, { patience: -1 }),
      (o) => new ReduceLROnPlateau(o, { threshold: Number.NaN }),
      (o) => new ReduceLROnPlateau(o, { cooldown: 0.5 }),
      (o) => new ReduceLROnPlateau(o, { minLr: [0] }),
      (o) => new ReduceLROnPlateau(o, { eps: -1 }),
      (o) => new ReduceLROnPlateau(o).step(),
    ],
  ],
  [
    "LambdaLR",
    [
      (o) =>
        new LambdaLR(
          o,
          wrong(() => 1),
        ),
      (o) => new LambdaLR(o, { lrLambda: wrong(0.9) }),
      (o) => new LambdaLR(o, { lrLambda: [() => 1] }),
    ],
  ],
  ["MultiplicativeLR", [(o) => new MultiplicativeLR(o, { lrLambda: [() => 1, wrong(null)] })]],
  [
    "SequentialLR",
    [
      (o) => new SequentialLR(o, { schedulers: [], milestones: [] }),
      (o) => new SequentialLR(o, { schedulers: wrong(step(o)), milestones: [] }),
      (o) => new SequentialLR(o, { schedulers: [wrong({})], milestones: [] }),
      (o) => new SequentialLR(o, { schedulers: [step(o), step(o)], milestones: [] }),
      (o) => new SequentialLR(o, { schedulers: [step(o), step(o), step(o)], milestones: [5, 5] }),
      (o) => new SequentialLR(o, { schedulers: [step(o), new ReduceLROnPlateau(o)], milestones: [5] }),
      (o) => new SequentialLR(o, { schedulers: [step(o), step(other)], milestones: [5] }),
      (o) => new SequentialLR(o, { schedulers: [step(o), new ChainedScheduler([step(o)])], milestones: [5] }),
    ],
  ],
  [
    "ChainedScheduler",
    [
      () => new ChainedScheduler([]),
      (o) => new ChainedScheduler([step(o), new ReduceLROnPlateau(o)]),
      (o) => new ChainedScheduler([step(o), step(other)]),
    ],
  ],
  [
    "NoamLR",
    [(o) => new NoamLR(o, { dModel: 0, warmupSteps: 1 }), (o) => new NoamLR(o, { dModel: 1, warmupSteps: 0 })],
  ],
  ["NaturalExpLR", [(o) => new NaturalExpLR(o, { gamma: -1 })]],
  ["InverseTimeLR", [(o) => new InverseTimeLR(o, { gamma: wrong(undefined) })]],
  [
    "PiecewiseLR",
    [
      (o) => new PiecewiseLR(o, { boundaries: [2, 1], values: [1, 2, 3] }),
      (o) => new PiecewiseLR(o, { boundaries: [1], values: [1] }),
      (o) => new PiecewiseLR(o, { boundaries: [1], values: [1, Number.NaN] }),
    ],
  ],
  [
    "LinearWarmupLR",
    [
      (o) => new LinearWarmupLR(o, { warmupSteps: 0 }),
      (o) => new LinearWarmupLR(o, { warmupSteps: 2, startLr: 1 }),
      (o) => new LinearWarmupLR(o, { warmupSteps: 2, after: step(other) }),
      (o) => new LinearWarmupLR(o, { warmupSteps: 2, after: new ReduceLROnPlateau(o) }),
      (o) => new LinearWarmupLR(o, { warmupSteps: 2, after: new ChainedScheduler([step(o)]) }),
    ],
  ],
];

describe("bad options", () => {
  const rows = table.flatMap(([name, makes]) => makes.map((make, at): [string, number, Make] => [name, at, make]));
  it.each(rows)("%s %i", (name, _at, make) => {
    const optimizer = newOptimizer();
    expectCode("BAD_ARGUMENT", name, () => make(optimizer));
    expect(optimizer).toEqual(newOptimizer());
  });
});

describe("bad moments", () => {
  it("OneCycleLR past its end changes nothing", () => {
    const optimizer = newOptimizer();
    const schedule = new OneCycleLR(optimizer, { maxLr: 1, totalSteps: 2 });
    schedule.step();
    schedule.step();
    const before = JSON.stringify([optimizer, schedule.stateDict()]);
    expectCode("BAD_STATE", "OneCycleLR", () => schedule.step());
    expect(JSON.stringify([optimizer, schedule.stateDict()])).toBe(before);
  });

  it("a chain in which one schedule cannot step changes nothing", () => {
    const optimizer = newOptimizer();
    const decay = new ExponentialLR(optimizer, { gamma: 0.5 });
    const chain = new ChainedScheduler([decay, new OneCycleLR(optimizer, { maxLr: 1, totalSteps: 1 })]);
    chain.step();
    const before = JSON.stringify([optimizer, chain.stateDict(), decay.lastLr]);
    expectCode("BAD_STATE", "OneCycleLR", () => chain.step());
    expect(JSON.stringify([optimizer, chain.stateDict(), decay.lastLr])).toBe(before);
  });

  it("a group added later takes part unless its base lr is needed", () => {
    const optimizer = newOptimizer();
    const chainable = step(optimizer);
    const closed = new LambdaLR(optimizer, { lrLambda: () => 0.5 });
    optimizer.groups.push({ lr: 8, momentum: 0 });
    chainable.step();
    chainable.step();
    expect(optimizer.groups.map(({ lr }) => lr)).toEqual([0.05, 0.1, 0.8]);
    expectCode("BAD_STATE", "LambdaLR", () => closed.step());
  });
});
