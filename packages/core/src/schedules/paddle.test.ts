// Values of PaddlePaddle's documented formulas, worked out by hand or in a form of their own.
import { describe, expect, it } from "vitest";
import {
  CosineAnnealingLR,
  ExponentialLR,
  InverseTimeLR,
  LinearWarmupLR,
  type LRScheduler,
  NaturalExpLR,
  NoamLR,
  PiecewiseLR,
  PolynomialLR,
  ReduceLROnPlateau,
  type ScheduledOptimizer,
} from "./index";

function trace(make: (optimizer: ScheduledOptimizer) => LRScheduler, lr: number, steps: number): number[] {
  const optimizer = { groups: [{ lr }] };
  const schedule = make(optimizer);
  const first = optimizer.groups[0]?.lr as number;
  return [first].concat(
    Array.from({ length: steps }, () => {
      schedule.step();
      return optimizer.groups[0]?.lr as number;
    }),
  );
}

const half = Math.exp(-0.5);
const table: [string, number, (optimizer: ScheduledOptimizer) => LRScheduler, number[]][] = [
  // 64^-0.5 = 1/8; the rise has slope 4^-1.5 = 1/8 and meets e^-0.5 at e = 4.
  [
    "NoamLR",
    2,
    (o) => new NoamLR(o, { dModel: 64, warmupSteps: 4 }),
    [0, 1 / 32, 2 / 32, 3 / 32, 1 / 8, 1 / (4 * Math.sqrt(5))],
  ],
  [
    "NaturalExpLR",
    0.5,
    (o) => new NaturalExpLR(o, { gamma: 0.5 }),
    [0.5, 0.5 * half, 0.5 * half ** 2, 0.5 * half ** 3],
  ],
  ["InverseTimeLR", 1, (o) => new InverseTimeLR(o, { gamma: 0.5 }), [1, 2 / 3, 1 / 2, 2 / 5, 1 / 3]],
  [
    "PiecewiseLR",
    9,
    (o) => new PiecewiseLR(o, { boundaries: [2, 3], values: [0.1, 0.2, 0.3] }),
    [0.1, 0.1, 0.2, 0.3, 0.3],
  ],
  [
    "PolynomialLR to an end",
    1,
    (o) => new PolynomialLR(o, { totalIters: 4, endLr: 0.2 }),
    [1, 0.8, 0.6, 0.4, 0.2, 0.2],
  ],
  [
    "PolynomialLR in cycles",
    1,
    (o) => new PolynomialLR(o, { totalIters: 2, power: 2, endLr: 0.1, cycle: true }),
    [1, 0.325, 0.1, 0.15625, 0.1, 0.1 + 0.9 / 36, 0.1],
  ],
  [
    "LinearWarmupLR to the base lr",
    0.5,
    (o) => new LinearWarmupLR(o, { warmupSteps: 4, startLr: 0.1, endLr: 0.5 }),
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.5],
  ],
  [
    "LinearWarmupLR into a schedule",
    1,
    (o) => new LinearWarmupLR(o, { warmupSteps: 2, after: new ExponentialLR(o, { gamma: 0.5 }) }),
    [0, 0.5, 1, 0.5, 0.25],
  ],
];

describe("PaddlePaddle's schedules", () => {
  it.each(table)("%s", (_name, lr, make, expected) => {
    const lrs = trace(make, lr, expected.length - 1);
    lrs.forEach((value, epoch) => {
      expect(Math.abs(value - (expected[epoch] as number)), `epoch ${epoch}`).toBeLessThanOrEqual(1e-14);
    });
  });

  it("starts the schedule after a warm-up at its own epoch 0", () => {
    const optimizer = { groups: [{ lr: 1 }] };
    const after = new CosineAnnealingLR(optimizer, { tMax: 10 });
    const schedule = new LinearWarmupLR(optimizer, { warmupSteps: 3, after });
    expect(after.lastEpoch).toBe(-1);
    for (let step = 0; step < 5; step++) schedule.step();
    expect([schedule.lastEpoch, after.lastEpoch]).toEqual([5, 2]);
    expect(schedule.lastLr[0]).toBeCloseTo((1 + Math.cos(Math.PI / 5)) / 2, 14);
  });

  it("can leave metrics out of account during cooldown", () => {
    const lrsWith = (ignoreMetricsInCooldown: boolean) => {
      const options = { factor: 0.5, patience: 0, cooldown: 1, ignoreMetricsInCooldown };
      const schedule = new ReduceLROnPlateau({ groups: [{ lr: 1 }] }, options);
      return [1, 1, 0.1, 0.5].map((metric) => {
        schedule.step(metric);
        return schedule.lastLr[0];
      });
    };
    expect(lrsWith(false)).toEqual([1, 0.5, 0.5, 0.25]); // 0.1 became the best, so 0.5 is bad
    expect(lrsWith(true)).toEqual([1, 0.5, 0.5, 0.5]); // the best is still 1
  });
});
