// Options that JavaScript would let through: misspelt, out of range, of another kind, or in another place.
import { describe, expect, it } from "vitest";
import { make } from "../../testing/schedules/make";
import { type ErrorCode, OptError } from "../errors/errors";
import * as schedules from "./index";

const { ChainedScheduler, ExponentialLR, LambdaLR, OneCycleLR, ReduceLROnPlateau, StepLR } = schedules;

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

type Table = [name: string, valid: object, wrong: Readonly<Record<string, readonly unknown[]>>];
/** A schedule, all of its options, and values that they must not have. */
const table: Table[] = [
  ["LambdaLR", { lrLambda: () => 1 }, { lrLambda: [0.9, [() => 1]] }],
  ["MultiplicativeLR", { lrLambda: () => 1 }, { lrLambda: [[() => 1, null]] }],
  ["StepLR", { stepSize: 2, gamma: 0.5 }, { stepSize: [0, 1.5], gamma: [-0.1, Number.NaN] }],
  ["MultiStepLR", { milestones: [2], gamma: 0.5 }, { milestones: [3, "12", [2, 2.5], [-1]], gamma: [Infinity] }],
  ["ConstantLR", { factor: 0.5, totalIters: 2 }, { factor: [1.1, -0.1], totalIters: [-1, 0.5] }],
  [
    "LinearLR",
    { startFactor: 0.5, endFactor: 1, totalIters: 2 },
    { startFactor: [0, 1.1, "0.5"], endFactor: [1.1], totalIters: [-1] },
  ],
  ["ExponentialLR", { gamma: 0.5 }, { gamma: [undefined, -1] }],
  [
    "PolynomialLR",
    { totalIters: 2, power: 2, endLr: 0, cycle: true },
    { totalIters: [0], power: [-1], endLr: [Number.NaN], cycle: [0, "yes", null] },
  ],
  ["CosineAnnealingLR", { tMax: 2, etaMin: 0, warmup: 1 }, { tMax: [0], etaMin: [Number.NaN], warmup: [-1, 0.5, 2] }],
  [
    "WarmupStableDecayLR",
    { warmup: 1, stable: 2, decay: 3, shape: "sqrt" },
    { warmup: [-1, 0.5], stable: [-1, undefined], decay: [0], shape: ["exp", 1] },
  ],
  ["CosineAnnealingWarmRestarts", { t0: 2, tMult: 2, etaMin: 0 }, { t0: [0], tMult: [0], etaMin: ["0"] }],
  [
    "CyclicLR",
    {
      baseLr: 0.1,
      maxLr: 1,
      stepSizeUp: 2,
      stepSizeDown: 2,
      mode: "exp_range",
      gamma: 1,
      scaleFn: () => 1,
      scaleMode: "cycle",
      cycleMomentum: true,
      baseMomentum: 0.1,
      maxMomentum: 0.5,
    },
    {
      baseLr: [[0.1]],
      maxLr: [[1, Number.NaN]],
      stepSizeUp: [0],
      stepSizeDown: [-1],
      mode: ["square"],
      gamma: [Number.NaN],
      scaleFn: [2],
      scaleMode: ["epoch"],
      cycleMomentum: [0, "yes", null],
      maxMomentum: [1],
    },
  ],
  [
    "OneCycleLR",
    {
      maxLr: 1,
      totalSteps: 4,
      epochs: 2,
      stepsPerEpoch: 2,
      pctStart: 0.5,
      annealStrategy: "cos",
      cycleMomentum: true,
      baseMomentum: 0.1,
      maxMomentum: 0.5,
      divFactor: 2,
      finalDivFactor: 2,
      threePhase: true,
    },
    {
      maxLr: [[1, 2, 3]],
      totalSteps: [0],
      pctStart: [1.1],
      annealStrategy: ["sine"],
      cycleMomentum: [0, "yes", null],
      baseMomentum: [-1],
      divFactor: [0],
      finalDivFactor: [Number.NaN],
      threePhase: [0, "yes", null],
    },
  ],
  [
    "ReduceLROnPlateau",
    {
      mode: "max",
      factor: 0.5,
      patience: 1,
      threshold: 0,
      thresholdMode: "abs",
      cooldown: 1,
      minLr: 0,
      eps: 0,
      ignoreMetricsInCooldown: true,
    },
    {
      mode: ["best"],
      factor: [1],
      patience: [-1],
      threshold: [Number.NaN],
      thresholdMode: ["both"],
      cooldown: [0.5],
      minLr: [[0]],
      eps: [-1],
      ignoreMetricsInCooldown: [0, "yes", null],
    },
  ],
  [
    "SWALR",
    { swaLr: 0.1, annealEpochs: 2, annealStrategy: "linear" },
    { swaLr: [undefined, Number.NaN, [1]], annealEpochs: [-1, 0.5], annealStrategy: ["sine"] },
  ],
  ["NoamLR", { dModel: 2, warmupSteps: 2 }, { dModel: [0], warmupSteps: [0] }],
  ["NaturalExpLR", { gamma: 0.5 }, { gamma: [-1] }],
  ["InverseTimeLR", { gamma: 0.5 }, { gamma: [undefined] }],
  ["PiecewiseLR", { boundaries: [1], values: [1, 2] }, { boundaries: [[2, 1]], values: [[1], [1, Number.NaN]] }],
  [
    "LinearWarmupLR",
    { warmupSteps: 2, startLr: 0, endLr: 1, after: undefined },
    { warmupSteps: [0], startLr: [1], after: [new StepLR(other, { stepSize: 1 })] },
  ],
  ["SequentialLR", { schedulers: [], milestones: [] }, { schedulers: [[], [{}], new StepLR(other, { stepSize: 1 })] }],
];

describe.each(table)("%s", (name, valid, wrong) => {
  const of = (options: unknown) => make(newOptimizer(), name, options);

  it("takes its options, and names the right one for a misspelt", () => {
    if (name !== "SequentialLR") of(valid); // whose schedules have to be of the same optimizer
    for (const option of Object.keys(valid))
      expect(rejection(() => of({ ...valid, [`${option}s`]: 1 })).message).toMatch(
        `[${name}] there is no option ${option}s. Did you mean ${option}?`,
      );
  });

  it("rejects anything but an object of options", () => {
    for (const options of [null, 0.5, "0.5", [1], () => 1, new Map()])
      expect(rejection(() => of(options)).code).toBe("BAD_ARGUMENT");
  });

  const rows = Object.entries(wrong).flatMap(([option, values]) => values.map((value) => [option, value] as const));
  it.each(rows)("rejects %s %o, and changes nothing", (option, value) => {
    const optimizer = newOptimizer();
    expectCode("BAD_ARGUMENT", name, () => make(optimizer, name, { ...valid, [option]: value }));
    expect(optimizer).toEqual(newOptimizer());
  });
});

const step = (o: schedules.ScheduledOptimizer) => new StepLR(o, { stepSize: 2 });
const of = (name: string, options?: object) => (o: unknown) => make(o, name, options);
const inSequence = (milestones: number[], ...rest: ((o: never) => schedules.LRScheduler)[]) => {
  const schedulersOf = (o: unknown) => [step, ...rest].map((each) => each(o as never));
  return (o: unknown) => make(o, "SequentialLR", { schedulers: schedulersOf(o), milestones });
};
const chained = (o: schedules.ScheduledOptimizer) => new ChainedScheduler([step(o)]);
const plateau = (o: schedules.ScheduledOptimizer) => new ReduceLROnPlateau(o);
const without = { groups: [{ lr: 1 }] };

it.each<[string, (o: schedules.ScheduledOptimizer) => unknown]>([
  ["StepLR", () => new StepLR(wrong(undefined), { stepSize: 1 })],
  ["StepLR", () => new StepLR({ groups: [{ lr: wrong("1") }] }, { stepSize: 1 })],
  ["StepLR", of("StepLR")],
  ["ExponentialLR", of("ExponentialLR", {})],
  ["CyclicLR", () => make(without, "CyclicLR", { baseLr: 0.1, maxLr: 1 })],
  ["OneCycleLR", () => make(without, "OneCycleLR", { maxLr: 1, totalSteps: 10 })],
  ["OneCycleLR", of("OneCycleLR", { maxLr: 1 })],
  ["OneCycleLR", of("OneCycleLR", { maxLr: 1, epochs: 3 })],
  ["OneCycleLR", of("OneCycleLR", { maxLr: 1, epochs: 0, stepsPerEpoch: 1 })],
  ["OneCycleLR", of("OneCycleLR", { maxLr: 1, epochs: 1, stepsPerEpoch: 0.5 })],
  ["ReduceLROnPlateau", (o) => plateau(o).step()],
  ["SequentialLR", inSequence([], step)],
  ["SequentialLR", inSequence([5, 5], step, step)],
  ["SequentialLR", (o) => make(o, "SequentialLR", { schedulers: [plateau(o), step(o)], milestones: [5] })],
  ["SequentialLR", inSequence([5], () => step(other))],
  ["SequentialLR", inSequence([5], chained)],
  ["ChainedScheduler", () => new ChainedScheduler([])],
  ["ChainedScheduler", (o) => new ChainedScheduler([step(o), plateau(o)])],
  ["ChainedScheduler", (o) => new ChainedScheduler([step(o), step(other)])],
  ["LinearWarmupLR", (o) => make(o, "LinearWarmupLR", { warmupSteps: 2, after: plateau(o) })],
  ["LinearWarmupLR", (o) => make(o, "LinearWarmupLR", { warmupSteps: 2, after: chained(o) })],
])("%s rejects what does not fit together %#", (name, body) => {
  const optimizer = newOptimizer();
  expectCode("BAD_ARGUMENT", name, () => body(optimizer));
  expect(optimizer).toEqual(newOptimizer());
});

it("ChainedScheduler takes its options, and names the right one for a misspelt", () => {
  const chain = (options: object) => new ChainedScheduler([step(newOptimizer())], options);
  chain({ optimizer: undefined });
  expect(rejection(() => chain({ optimiser: 1 })).message).toMatch("Did you mean optimizer?");
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
