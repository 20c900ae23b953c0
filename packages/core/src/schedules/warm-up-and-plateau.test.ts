// A warm-up by steps, then a plateau by validations.
import { describe, expect, it } from "vitest";
import {
  ChainedScheduler,
  CosineAnnealingLR,
  ExponentialLR,
  LambdaLR,
  LinearLR,
  type LRScheduler,
  ReduceLROnPlateau,
  type ScheduledOptimizer,
  SequentialLR,
} from "./index";

const STEPS = 6;
const start = () => ({ groups: [{ lr: 1 }, { lr: 0.5 }] });
const warmUps: [string, (o: ScheduledOptimizer) => LRScheduler][] = [
  ["LinearLR", (o) => new LinearLR(o, { startFactor: 0.25, totalIters: STEPS })],
  ["LambdaLR", (o) => new LambdaLR(o, { lrLambda: (step) => Math.min(1, 0.25 + step / 8) })],
  ["ChainedScheduler", (o) => new ChainedScheduler([new LinearLR(o, { startFactor: 0.25, totalIters: STEPS })])],
];
const both = (o: ScheduledOptimizer, warmUp: LRScheduler, patience = 0) =>
  new SequentialLR(o, { schedulers: [warmUp, new ReduceLROnPlateau(o, { patience })], milestones: [STEPS] });

const EPOCH = 4; // steps
const METRICS = [9, 5, 5, 4, 4, 4];

describe.each(warmUps)("%s, then ReduceLROnPlateau", (_, warmUpOf) => {
  /** lr of each step and after each epoch; saved and loaded after `resumeAt` calls. */
  function trace(resumeAt = -1) {
    let o = start();
    let schedule = both(o, warmUpOf(o));
    let calls = 0;
    const rates = [o.groups.map(({ lr }) => lr)];
    const call = (move: (s: LRScheduler) => void) => {
      if (calls++ === resumeAt) {
        const saved = JSON.parse(JSON.stringify(schedule.stateDict()));
        o = start();
        schedule = both(o, warmUpOf(o));
        schedule.loadStateDict(saved);
        expect(JSON.parse(JSON.stringify(schedule.stateDict()))).toEqual(saved);
      }
      move(schedule);
      rates.push(o.groups.map(({ lr }) => lr));
    };
    for (const metric of METRICS) {
      for (let step = 0; step < EPOCH; step++) call((s) => s.step());
      call((s) => s.observe(metric));
    }
    return rates;
  }

  it("has the rates of the warm-up alone, then those of the plateau alone", () => {
    const o = start();
    const warmUp = warmUpOf(o);
    const expected = [o.groups.map(({ lr }) => lr)];
    const set = (rates: readonly number[]) =>
      rates.forEach((lr, g) => {
        o.groups[g]!.lr = lr;
      });
    const note = () => expected.push(o.groups.map(({ lr }) => lr));
    const plateau = new ReduceLROnPlateau(start(), { patience: 0 });
    for (const [epoch, metric] of METRICS.entries()) {
      for (let step = 0; step < EPOCH; step++) {
        const number = EPOCH * epoch + step + 1;
        if (number < STEPS) warmUp.step();
        if (number === STEPS) set(start().groups.map(({ lr }) => lr));
        note();
      }
      if (EPOCH * (epoch + 1) >= STEPS) {
        plateau.step(metric);
        set(plateau.lastLr);
      }
      note();
    }
    expect(trace()).toEqual(expected);
    expect(expected.at(-1)).toEqual([0.001, 0.0005].map((lr) => expect.closeTo(lr, 12)));
  });

  it("goes on where it was saved", () => {
    for (let at = 0; at < METRICS.length * (EPOCH + 1); at++) expect(trace(at)).toEqual(trace());
  });
});

it("step(metric) does both: for a warm-up by epochs", () => {
  const run = (move: (s: SequentialLR, metric: number) => void) => {
    const o = start();
    const schedule = both(o, warmUps[0]![1](o));
    return Array.from({ length: 12 }, () => {
      move(schedule, 3);
      return [o.groups[0]!.lr, schedule.lastEpoch];
    });
  };
  const inOne = run((s, metric) => s.step(metric));
  expect(inOne).toEqual(
    run((s, metric) => {
      s.observe(metric);
      s.step();
    }),
  );
  expect(inOne.at(-1)).toEqual([expect.closeTo(1e-5, 12), 12]);
});

it("steps without a metric leave the plateau as it is", () => {
  const o = start();
  const schedule = both(o, warmUps[0]![1](o));
  for (let step = 0; step < 50; step++) schedule.step();
  expect(o).toEqual(start());
});

it("a plateau may stand between others, and at the first milestone 0", () => {
  const o = start();
  const last = new ExponentialLR(o, { gamma: 0.5 });
  const schedulers = [new LinearLR(o), new ReduceLROnPlateau(o, { patience: 0 }), last];
  const schedule = new SequentialLR(o, { schedulers, milestones: [0, 2] });
  expect(o).toEqual(start());
  schedule.observe(1);
  schedule.observe(1);
  expect(schedule.lastLr).toEqual([0.1, 0.05]);
  schedule.step();
  schedule.step(); // the next one begins at the base lr
  expect(schedule.lastLr).toEqual([1, 0.5]);
  schedule.step();
  expect(schedule.lastLr).toEqual([0.5, 0.25]);
});

it("a chain has a plateau of one option beside schedules of others", () => {
  const o = { groups: [{ lr: 1, weightDecay: 1 }] };
  const decay = new CosineAnnealingLR(o, { option: "weightDecay", tMax: 4 });
  const schedule = new ChainedScheduler([new ReduceLROnPlateau(o, { patience: 0 }), decay]);
  schedule.step(1);
  schedule.step();
  schedule.observe(1);
  expect(o.groups[0]).toEqual({ lr: 0.1, weightDecay: expect.closeTo(0.5, 12) });
  expect(schedule.lastEpoch).toBe(2);
});

describe("errors", () => {
  const rejects = (code: string, message: RegExp, body: () => unknown) =>
    expect(body).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));

  it("a metric must be a number, also during the warm-up", () => {
    const o = start();
    const schedule = both(o, warmUps[0]![1](o));
    const before = JSON.stringify([o, schedule.stateDict()]);
    rejects("BAD_ARGUMENT", /\[SequentialLR\] metric must be a number/, () => schedule.observe("1" as never));
    rejects("BAD_ARGUMENT", /\[SequentialLR\] metric must be a number/, () => schedule.step(null as never));
    expect(JSON.stringify([o, schedule.stateDict()])).toBe(before);
  });

  it("a plateau cannot begin a sequence, nor multiply in a chain", () => {
    const o = start();
    const [rise, plateau] = [new LinearLR(o), new ReduceLROnPlateau(o)];
    rejects("BAD_ARGUMENT", /schedulers\[0\] must be a simple or chained schedule, got "?a ReduceLROnPlateau/, () => {
      new SequentialLR(o, { schedulers: [plateau, rise], milestones: [3] });
    });
    rejects("BAD_ARGUMENT", /schedulers\[1\] must be the only schedule of lr.+ in a SequentialLR\./, () => {
      new ChainedScheduler([rise, plateau]);
    });
  });

  it("a step that throws leaves what the metric would have changed", () => {
    const o = start();
    const schedulers = [
      new LinearLR(o),
      new ReduceLROnPlateau(o, { patience: 0 }),
      new LambdaLR(o, { lrLambda: () => 1 }),
    ];
    const schedule = new SequentialLR(o, { schedulers, milestones: [1, 2] });
    schedule.step();
    schedule.observe(1);
    (o.groups as object[]).push({ lr: 8 }); // LambdaLR has no base lr for it
    const before = JSON.stringify([o, schedule.stateDict()]);
    rejects("BAD_STATE", /base lr must be known for every group/, () => schedule.step(1));
    expect(JSON.stringify([o, schedule.stateDict()])).toBe(before);
  });
});
