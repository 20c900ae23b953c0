// Learning rates of PyTorch 2.13 over twelve epochs, base lr 1.
import { describe, expect, it } from "vitest";
import type { LRScheduler, ScheduledOptimizer } from "./index";
import * as schedules from "./index";

const E95 = [1, 0.95, 0.9025, 0.857375, 0.81450625, 0.7737809374999998, 0.7350918906249998, 0.6983372960937497];
const E90 = [1, 0.9, 0.81, 0.729, 0.6561, 0.59049, 0.531441, 0.4782969, 0.43046721, 0.387420489];
const C5 = [0.9140576474687263, 0.6890576474687263, 0.41094235253127365, 0.1859423525312737];

const table: [string, (optimizer: ScheduledOptimizer) => LRScheduler, number[]][] = [
  [
    "LambdaLR",
    (o) => new schedules.LambdaLR(o, { lrLambda: (e) => 0.95 ** e }),
    [...E95, 0.6634204312890623, 0.6302494097246091, 0.5987369392383787, 0.5688000922764597],
  ],
  [
    "MultiplicativeLR",
    (o) => new schedules.MultiplicativeLR(o, { lrLambda: () => 0.95 }),
    [...E95, 0.6634204312890623, 0.6302494097246091, 0.5987369392383786, 0.5688000922764596],
  ],
  [
    "StepLR",
    (o) => new schedules.StepLR(o, { stepSize: 3, gamma: 0.5 }),
    [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125],
  ],
  [
    "MultiStepLR",
    (o) => new schedules.MultiStepLR(o, { milestones: [2, 5, 5], gamma: 0.1 }),
    [1, 1, 0.1, 0.1, 0.1, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001],
  ],
  [
    "ConstantLR",
    (o) => new schedules.ConstantLR(o, { factor: 0.25, totalIters: 4 }),
    [0.25, 0.25, 0.25, 0.25, 1, 1, 1, 1, 1, 1, 1, 1],
  ],
  [
    "LinearLR",
    (o) => new schedules.LinearLR(o, { startFactor: 0.2, endFactor: 1, totalIters: 5 }),
    [0.2, 0.36, 0.52, 0.68, 0.84, 1, 1, 1, 1, 1, 1, 1],
  ],
  [
    "ExponentialLR",
    (o) => new schedules.ExponentialLR(o, { gamma: 0.9 }),
    [...E90, 0.34867844010000015, 0.31381059609000017],
  ],
  [
    "PolynomialLR",
    (o) => new schedules.PolynomialLR(o, { totalIters: 8, power: 2 }),
    [1, 0.765625, 0.5625, 0.390625, 0.25, 0.140625, 0.0625, 0.015625, 0, 0, 0, 0],
  ],
  [
    "CosineAnnealingLR",
    (o) => new schedules.CosineAnnealingLR(o, { tMax: 5, etaMin: 0.1 }),
    [1, ...C5, 0.1, ...C5.toReversed(), 1, C5[0] as number],
  ],
  [
    "CosineAnnealingWarmRestarts",
    (o) => new schedules.CosineAnnealingWarmRestarts(o, { t0: 3, tMult: 2, etaMin: 0.1 }),
    [1, 0.775, 0.325, 1, 0.9397114317029974, 0.775, 0.55, 0.325, 0.16028856829700258, 1].concat([
      0.9846666218300807, 0.9397114317029974,
    ]),
  ],
  [
    "CyclicLR",
    (o) => new schedules.CyclicLR(o, { baseLr: 0.1, maxLr: 1, stepSizeUp: 3, stepSizeDown: 2, mode: "triangular2" }),
    [0.1, 0.4, 0.7, 1, 0.55, 0.1, 0.25, 0.4, 0.55, 0.325, 0.1, 0.175],
  ],
  [
    "OneCycleLR",
    (o) => new schedules.OneCycleLR(o, { maxLr: 1, totalSteps: 12 }),
    [0.04, 0.3497896542195831, 0.8792851591221287, 0.9944154354509117, 0.9330129698414117, 0.811745653949763].concat([
      0.6473789976951033, 0.46263710266697505, 0.28306099820869923, 0.1334775301888306, 0.03456698742539522, 4e-6,
    ]),
  ],
  [
    "SequentialLR",
    (o) => {
      const warmup = new schedules.ConstantLR(o, { factor: 0.1, totalIters: 2 });
      const decay = new schedules.ExponentialLR(o, { gamma: 0.9 });
      return new schedules.SequentialLR(o, { schedulers: [warmup, decay], milestones: [3] });
    },
    [0.1, 0.1, 1, ...E90].slice(0, 12),
  ],
];

describe("PyTorch's traces", () => {
  it.each(table)("%s", (_name, make, expected) => {
    const optimizer = { groups: [{ lr: 1, betas: [0.9, 0.999] as [number, number] }] };
    const schedule = make(optimizer);
    for (const [epoch, lr] of expected.entries()) {
      expect(schedule.lastEpoch).toBe(epoch);
      expect(schedule.lastLr).toEqual([optimizer.groups[0]?.lr]);
      expect(Math.abs((optimizer.groups[0]?.lr as number) - lr)).toBeLessThanOrEqual(1e-12);
      schedule.step();
    }
  });

  it("ReduceLROnPlateau", () => {
    const optimizer = { groups: [{ lr: 1 }] };
    const schedule = new schedules.ReduceLROnPlateau(optimizer, { factor: 0.5, patience: 2, cooldown: 1 });
    const metrics = [1, 0.9, 0.95, 0.95, 0.95, 0.89, 0.95, 0.95, 0.95, 0.95, 0.95];
    const lrs = metrics.map((metric) => {
      schedule.step(metric);
      return schedule.lastLr[0];
    });
    expect(lrs).toEqual([1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25]);
  });
});
