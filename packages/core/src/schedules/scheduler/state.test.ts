import { describe, expect, it } from "vitest";
import { OptError } from "../../errors/errors";
import type { LRScheduler, ScheduledOptimizer } from "../index";
import * as schedules from "../index";

const newOptimizer = () => ({
  groups: [
    { lr: 1, betas: [0.9, 0.999] as [number, number] },
    { lr: 0.1, momentum: 0.5 },
  ],
});

type Make = (optimizer: ScheduledOptimizer) => LRScheduler;
const gamma = 0.9;
const table: [string, Make][] = [
  ["LambdaLR", (o) => new schedules.LambdaLR(o, { lrLambda: [(e) => 1 / (1 + e), () => 1] })],
  ["MultiplicativeLR", (o) => new schedules.MultiplicativeLR(o, { lrLambda: (e) => 1 - 1 / (e + 2) })],
  ["StepLR", (o) => new schedules.StepLR(o, { stepSize: 3 })],
  ["MultiStepLR", (o) => new schedules.MultiStepLR(o, { milestones: [2, 7, 7] })],
  ["ConstantLR", (o) => new schedules.ConstantLR(o, { totalIters: 6 })],
  ["ConstantLR of zero", (o) => new schedules.ConstantLR(o, { factor: 0, totalIters: 6 })],
  ["LinearLR", (o) => new schedules.LinearLR(o, { totalIters: 8 })],
  ["ExponentialLR", (o) => new schedules.ExponentialLR(o, { gamma })],
  ["PolynomialLR", (o) => new schedules.PolynomialLR(o, { totalIters: 9, power: 2, endLr: 0.01 })],
  ["CosineAnnealingLR", (o) => new schedules.CosineAnnealingLR(o, { tMax: 4 })],
  ["CosineAnnealingWarmRestarts", (o) => new schedules.CosineAnnealingWarmRestarts(o, { t0: 2, tMult: 2 })],
  ["CyclicLR", (o) => new schedules.CyclicLR(o, { baseLr: [0.1, 0.2], maxLr: 1, stepSizeUp: 3 })],
  ["CyclicLR by scaleFn", (o) => new schedules.CyclicLR(o, { baseLr: 0.1, maxLr: 1, scaleFn: (x) => 1 / x })],
  ["OneCycleLR", (o) => new schedules.OneCycleLR(o, { maxLr: [1, 2], epochs: 2, stepsPerEpoch: 10 })],
  ["ReduceLROnPlateau", (o) => new schedules.ReduceLROnPlateau(o, { patience: 1, cooldown: 2 })],
  ["SWALR", (o) => new schedules.SWALR(o, { swaLr: [0.5, 0.1], annealEpochs: 6 })],
  ["NoamLR", (o) => new schedules.NoamLR(o, { dModel: 16, warmupSteps: 5 })],
  ["NaturalExpLR", (o) => new schedules.NaturalExpLR(o, { gamma })],
  ["InverseTimeLR", (o) => new schedules.InverseTimeLR(o, { gamma })],
  ["PiecewiseLR", (o) => new schedules.PiecewiseLR(o, { boundaries: [4, 8], values: [1, 0.5, 0.1] })],
  [
    "LinearWarmupLR",
    (o) => new schedules.LinearWarmupLR(o, { warmupSteps: 4, after: new schedules.ExponentialLR(o, { gamma }) }),
  ],
  [
    "SequentialLR",
    (o) => {
      const first = new schedules.OneCycleLR(o, { maxLr: 1, totalSteps: 5 });
      const second = new schedules.CyclicLR(o, { baseLr: 0.1, maxLr: 1, stepSizeUp: 3 });
      return new schedules.SequentialLR(o, { schedulers: [first, second], milestones: [6] });
    },
  ],
  [
    "ChainedScheduler",
    (o) => {
      const warmup = new schedules.LinearLR(o, { totalIters: 6 });
      return new schedules.ChainedScheduler([warmup, new schedules.ExponentialLR(o, { gamma })]);
    },
  ],
];

const metric = (step: number) => Math.abs(4 - step);

function stepped(make: Make, steps: number) {
  const optimizer = newOptimizer();
  const schedule = make(optimizer);
  for (let step = 0; step < steps; step++) schedule.step(metric(step));
  return { optimizer, schedule };
}

const asJson = (value: unknown) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>;

describe.each(table)("state of %s", (name, make) => {
  it("says of which schedule it is", () => {
    const { schedule } = stepped(make, 0);
    expect(schedule.stateDict().kind).toBe(name.split(" ")[0]);
  });

  it.each([0, 5, 7])("goes on after step %i as if never stopped", (savedAt) => {
    const saved = asJson(stepped(make, savedAt).schedule.stateDict());
    const { optimizer, schedule } = stepped(make, 0);
    schedule.loadStateDict(saved);
    expect(asJson(schedule.stateDict())).toEqual(saved);
    for (let step = savedAt; step < 12; step++) schedule.step(metric(step));

    const whole = stepped(make, 12);
    expect(optimizer).toEqual(whole.optimizer);
    expect([schedule.lastEpoch, schedule.lastLr]).toEqual([whole.schedule.lastEpoch, whole.schedule.lastLr]);
  });

  it("is put back whole where a step fails", () => {
    const { optimizer, schedule } = stepped(make, 5);
    const now = () => JSON.stringify([optimizer, schedule.stateDict(), schedule.lastLr]);
    const before = now();
    for (let count = 1; count < 6; count++) {
      const restore = schedule.snapshot();
      for (let step = 5; step < 5 + count; step++) schedule.step(metric(step));
      restore();
      expect(now()).toBe(before);
    }
  });

  it("rejects a state that does not fit and changes nothing", () => {
    const good = asJson(stepped(make, 5).schedule.stateDict());
    const { optimizer, schedule } = stepped(make, 3);
    const before = JSON.stringify([optimizer, schedule.stateDict(), schedule.lastLr]);
    const broken = Object.keys(good).map((key) => ({ ...good, [key]: "broken" }));
    const others = [null, 7, {}, { ...good, lr: [1] }, { ...good, lastEpoch: 1.5 }, { ...good, baseLrs: [1, 2, 3] }];
    const negative = ["badEpochs", "cooldownLeft"].filter((key) => key in good).map((key) => ({ ...good, [key]: -1 }));
    for (const state of [...broken, ...others, ...negative]) {
      let code: unknown = "none";
      try {
        schedule.loadStateDict(state);
      } catch (error) {
        code = error instanceof OptError && error.code;
      }
      expect(code, JSON.stringify(state)).toBe("BAD_STATE");
      expect(JSON.stringify([optimizer, schedule.stateDict(), schedule.lastLr])).toBe(before);
    }
  });
});

describe("state of a composite", () => {
  it("is checked to the last part before anything is loaded", () => {
    const make = table.at(-1)?.[1] as Make;
    const state = stepped(make, 5).schedule.stateDict();
    const { optimizer, schedule } = stepped(make, 0);
    const before = JSON.stringify([optimizer, schedule.stateDict()]);
    const parts = (state.schedulers as object[]).map((part, index) => (index === 1 ? { ...part, lr: [] } : part));
    for (const schedulers of [parts, parts.slice(1), undefined]) {
      expect(() => schedule.loadStateDict({ ...state, schedulers })).toThrow(OptError);
      expect(JSON.stringify([optimizer, schedule.stateDict()])).toBe(before);
    }
  });

  it("loads several schedules of one optimizer in any order", () => {
    const optimizer = newOptimizer();
    const both = () => [new schedules.LinearLR(optimizer), new schedules.ExponentialLR(optimizer, { gamma })] as const;
    const [warmup, decay] = both();
    warmup.step();
    decay.step();
    const [states, lrs] = [[warmup.stateDict(), decay.stateDict()], optimizer.groups.map(({ lr }) => lr)];
    const [newWarmup, newDecay] = both();
    newDecay.loadStateDict(states[1]);
    newWarmup.loadStateDict(states[0]);
    expect(optimizer.groups.map(({ lr }) => lr)).toEqual(lrs);
  });
});

describe("a group added later", () => {
  it("keeps its own base lr under a state that knows none for it, and gets the lr that was saved", () => {
    const optimizer = newOptimizer();
    const schedule = new schedules.StepLR(optimizer, { stepSize: 1, gamma: 0.5 });
    optimizer.groups.push({ lr: 8, momentum: 0.5 } as never);
    schedule.step();
    const saved = asJson(schedule.stateDict());
    expect([saved.lr, saved.baseLrs]).toEqual([
      [0.5, 0.05, 4],
      [1, 0.1],
    ]);
    const other = { groups: [...newOptimizer().groups, { lr: 3 }] };
    const loaded = new schedules.StepLR(other, { stepSize: 1, gamma: 0.5 });
    loaded.loadStateDict(saved);
    expect(asJson(loaded.stateDict())).toMatchObject({ lr: [0.5, 0.05, 4], baseLrs: [1, 0.1, 3] });
    const next = new schedules.LambdaLR(other, { lrLambda: () => 2 });
    expect(next.lastLr).toEqual([2, 0.2, 6]); // from where each group began, as saved
  });
});
