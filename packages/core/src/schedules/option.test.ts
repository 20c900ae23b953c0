// Schedules of another option than the lr have the numbers of the lr, and leave it alone.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import { families, ourTrace, type Recipe, type Run } from "../../testing/schedules/recipes";
import { parameter, tensor } from "../create";
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
  type LRScheduler,
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
  SWALR,
  WarmupStableDecayLR,
} from "./index";

const withoutMomentum = ({ options, parts, ...recipe }: Recipe): Recipe => {
  const cycles = recipe.name === "OneCycleLR" || recipe.name === "CyclicLR";
  const own = cycles ? { ...options, cycleMomentum: false } : options;
  return { ...recipe, options: own, ...(parts && { parts: parts.map(withoutMomentum) }) };
};

describe.each(families)("%s", (_, runs) => {
  it("moves the weight decay by the words of the lr, also where it is saved and loaded", () => {
    fc.assert(
      fc.property(runs, fc.integer({ min: -1, max: 99 }), (run, at) => {
        const ofLr: Run = { ...run, recipes: run.recipes.map(withoutMomentum), steps: 100 };
        expect(ourTrace({ ...ofLr, option: "weightDecay" }, at)).toEqual(ourTrace(ofLr));
      }),
      { numRuns: 12 },
    );
  });
});

const optimizer = () => ({
  groups: [
    { lr: 1, weightDecay: 0.5, betas: [0.9, 0.999] as const, amsgrad: false },
    { lr: 2, weightDecay: 0.25, betas: [0.9, 0.999] as const, amsgrad: false },
  ],
});

it.each<[(o: ScheduledOptimizer) => LRScheduler]>([
  [(o) => new ConstantLR(o, { option: "weightDecay", factor: 0.5, totalIters: 2 })],
  [(o) => new ExponentialLR(o, { option: "weightDecay", gamma: 0.5 })],
  [(o) => new MultiplicativeLR(o, { option: "weightDecay", lrLambda: () => 0.5 })],
  [(o) => new MultiStepLR(o, { option: "weightDecay", milestones: [1], gamma: 0.5 })],
  [(o) => new PolynomialLR(o, { option: "weightDecay", totalIters: 2 })],
  [(o) => new CosineAnnealingWarmRestarts(o, { option: "weightDecay", t0: 2 })],
  [(o) => new InverseTimeLR(o, { option: "weightDecay", gamma: 1 })],
  [(o) => new NaturalExpLR(o, { option: "weightDecay", gamma: Math.LN2 })],
  [(o) => new NoamLR(o, { option: "weightDecay", dModel: 4, warmupSteps: 1 })],
  [(o) => new SWALR(o, { option: "weightDecay", swaLr: 0, annealEpochs: 2, annealStrategy: "linear" })],
  [(o) => new PiecewiseLR(o, { option: "weightDecay", boundaries: [1], values: [1, 0.25] })],
  [(o) => new WarmupStableDecayLR(o, { option: "weightDecay", warmup: 2, stable: 1, decay: 1 })],
  [(o) => new CosineAnnealingLR(o, { option: "weightDecay", tMax: 4, warmup: 2 })],
])("halves the weight decay in a step: %s", (make) => {
  const o = optimizer();
  const schedule = make(o);
  schedule.step();
  expect(schedule.lastLr[0]).toBeCloseTo(0.25, 15);
  expect(o.groups.map(({ lr, weightDecay }) => [lr, weightDecay])[0]).toEqual([1, schedule.lastLr[0]]);
});

it("the lr and another option move side by side, each from its own first value", () => {
  const o = optimizer();
  new ExponentialLR(o, { gamma: 0.5 }).step();
  new LambdaLR(o, { option: "weightDecay", lrLambda: (epoch) => 1 + epoch }).step();
  expect(o.groups.map(({ lr, weightDecay }) => [lr, weightDecay])).toEqual([
    [0.5, 1],
    [1, 0.5],
  ]);
  // Later schedules start from where the groups began.
  expect(new LambdaLR(o, { lrLambda: () => 1 }).lastLr).toEqual([1, 2]);
  expect(new LambdaLR(o, { option: "weightDecay", lrLambda: () => 1 }).lastLr).toEqual([0.5, 0.25]);
});

it("a ChainedScheduler has schedules of several options, and one state for all", () => {
  const begin = () => {
    const o = optimizer();
    const rise = new LinearLR(o, { startFactor: 0.5, totalIters: 2 });
    const decay = new LinearLR(o, { option: "weightDecay", startFactor: 1, endFactor: 0, totalIters: 4 });
    return { o, chain: new ChainedScheduler([rise, decay]) };
  };
  const { o, chain } = begin();
  chain.step();
  chain.step();
  expect(o.groups[0]).toMatchObject({ lr: 1, weightDecay: 0.25 });
  const saved = JSON.parse(JSON.stringify(chain.stateDict()));
  expect(saved.schedulers[1]).toMatchObject({ option: "weightDecay", baseValues: [0.5, 0.25], values: [0.25, 0.125] });
  expect(saved.schedulers[1]).not.toHaveProperty("lr");
  const other = begin();
  other.chain.loadStateDict(saved);
  chain.step();
  other.chain.step();
  expect(other.o).toEqual(o);
});

it("an optimizer steps with the value of the moment, as with one that is set by hand", () => {
  const steps = (move: (o: Momentum) => (step: number) => void) => {
    const w = parameter([1], { dtype: "f64" });
    const o = new Momentum([w], { lr: 0.1, momentum: 0.8 });
    const next = move(o);
    for (let step = 1; step <= 4; step++) {
      w.grad = tensor([step], { dtype: "f64" });
      o.step();
      next(step);
    }
    return w.dataSync()[0];
  };
  const scheduled = steps((o) => {
    const schedule = new StepLR(o, { option: "momentum", stepSize: 1, gamma: 0.5 });
    return () => schedule.step();
  });
  const byHand = steps((o) => (step) => {
    o.groups[0]!.momentum = 0.8 * 0.5 ** step;
  });
  expect(scheduled).toBe(byHand);
  expect(scheduled).not.toBe(steps(() => () => {}));
});

describe("bad options", () => {
  const make: [string, (o: never, option: unknown) => LRScheduler][] = [
    ["StepLR", (o, option) => new StepLR(o, { option: option as string, stepSize: 1 })],
    ["CyclicLR", (o, option) => new CyclicLR(o, { option: option as string, baseLr: 0, maxLr: 1 })],
    ["OneCycleLR", (o, option) => new OneCycleLR(o, { option: option as string, maxLr: 1, totalSteps: 9 })],
    ["ReduceLROnPlateau", (o, option) => new ReduceLROnPlateau(o, { option: option as string })],
    ["LinearWarmupLR", (o, option) => new LinearWarmupLR(o, { option: option as string, warmupSteps: 3 })],
  ];
  it.each(make)("%s rejects what is no number of each group, and names those that are", (name, of) => {
    for (const option of ["weigthDecay", "betas", "amsgrad", "momentum", "toString", 3, null]) {
      const o = optimizer();
      const wrong = expect.objectContaining({
        code: "BAD_ARGUMENT",
        where: name,
        message: expect.stringMatching(/option must be a number in all of .+, got .+\. Use lr, weightDecay\./),
      });
      expect(() => of(o as never, option), String(option)).toThrow(wrong);
      expect(o).toEqual(optimizer());
    }
    const some = { groups: [{ lr: 1, weightDecay: 1 }, { lr: 1 }] };
    expect(() => of(some as never, "weightDecay")).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
  });

  const rejects = (code: string, message: RegExp, body: () => unknown) =>
    expect(body).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));

  it("cycleMomentum goes with the lr alone, and is off for other options", () => {
    const o = optimizer();
    const given = { option: "weightDecay", maxLr: 1, totalSteps: 9 };
    rejects("BAD_ARGUMENT", /cycleMomentum must be false for a schedule of weightDecay/, () => {
      new OneCycleLR(o, { ...given, cycleMomentum: true });
    });
    expect(o).toEqual(optimizer());
    new OneCycleLR(o, given).step();
    expect(o.groups[0]!.betas).toEqual([0.9, 0.999]);
  });

  it("schedules that follow each other move the same option", () => {
    const o = optimizer();
    const decay = () => new StepLR(o, { option: "weightDecay", stepSize: 1 });
    const rise = () => new LinearLR(o);
    rejects("BAD_ARGUMENT", /\[SequentialLR\] schedulers\[1\] must be a schedule of lr, got "weightDecay"/, () => {
      new SequentialLR(o, { schedulers: [rise(), decay()], milestones: [2] });
    });
    rejects("BAD_ARGUMENT", /\[SequentialLR\] schedulers\[0\] must be a schedule of lr, got "weightDecay"/, () => {
      new SequentialLR(o, { schedulers: [new ChainedScheduler([rise(), decay()]), rise()], milestones: [2] });
    });
    rejects("BAD_ARGUMENT", /\[LinearWarmupLR\] after must be a schedule of lr, got "weightDecay"/, () => {
      new LinearWarmupLR(o, { warmupSteps: 2, after: decay() });
    });
  });

  it("a state of another option does not fit", () => {
    const o = optimizer();
    const [rate, decay] = [
      new CosineAnnealingLR(o, { tMax: 9 }),
      new CosineAnnealingLR(o, { option: "weightDecay", tMax: 9 }),
    ];
    const before = JSON.stringify(o);
    rejects("BAD_STATE", /of the option lr, got "weightDecay"/, () => {
      rate.loadStateDict(decay.stateDict());
    });
    rejects("BAD_STATE", /of the option weightDecay, got "lr"/, () => decay.loadStateDict(rate.stateDict()));
    expect(JSON.stringify(o)).toBe(before);
  });
});
