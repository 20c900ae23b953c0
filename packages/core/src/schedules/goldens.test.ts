// Learning rates of PyTorch 2.13 base lr 1.
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

/** Half the rate for two epochs, then the other from its beginning. */
const after = (make: (o: ScheduledOptimizer) => LRScheduler) => (o: ScheduledOptimizer) => {
  const first = new schedules.ConstantLR(o, { factor: 0.5, totalIters: 2 });
  return new schedules.SequentialLR(o, { schedulers: [first, make(o)], milestones: [2] });
};

const harmonic = (x: number) => 1 / (1 + x);

/** Learning rates, and beta1 where it moves. */
const further: [string, (optimizer: ScheduledOptimizer) => LRScheduler, number[], number[]?][] = [
  [
    "after: ConstantLR",
    after((o) => new schedules.ConstantLR(o, { factor: 0.25, totalIters: 3 })),
    [0.5, 0.5, 0.25, 0.25, 0.25, 1, 1],
  ],
  [
    "after: LinearLR",
    after((o) => new schedules.LinearLR(o, { startFactor: 0.2, endFactor: 0.9, totalIters: 4 })),
    [0.5, 0.5, 0.2, 0.375, 0.55, 0.725, 0.9, 0.9],
  ],
  [
    "after: StepLR",
    after((o) => new schedules.StepLR(o, { stepSize: 2, gamma: 0.5 })),
    [0.5, 0.5, 1, 1, 0.5, 0.5, 0.25],
  ],
  [
    "after: MultiStepLR",
    after((o) => new schedules.MultiStepLR(o, { milestones: [0, 2, 2], gamma: 0.5 })),
    [0.5, 0.5, 0.5, 0.5, 0.125, 0.125],
  ],
  [
    "after: MultiplicativeLR",
    after((o) => new schedules.MultiplicativeLR(o, { lrLambda: () => 0.75 })),
    [0.5, 0.5, 0.375, 0.28125, 0.2109375],
  ],
  [
    "after: LambdaLR",
    after((o) => new schedules.LambdaLR(o, { lrLambda: harmonic })),
    [0.5, 0.5, 1, 1 / 2, 1 / 3, 1 / 4],
  ],
  [
    "after: PolynomialLR",
    after((o) => new schedules.PolynomialLR(o, { totalIters: 4, power: 2 })),
    [0.5, 0.5, 1, 0.5625, 0.25, 0.0625, 0, 0],
  ],
  [
    "after: CosineAnnealingLR",
    after((o) => new schedules.CosineAnnealingLR(o, { tMax: 2, etaMin: 0.25 })),
    [0.5, 0.5, 1, 0.625, 0.25, 0.625, 1, 0.625, 0.25],
  ],
  [
    "after: CosineAnnealingWarmRestarts",
    after((o) => new schedules.CosineAnnealingWarmRestarts(o, { t0: 2, tMult: 2, etaMin: 0.25 })),
    [0.5, 0.5, 1, 0.625, 1, 0.890165042945, 0.625, 0.359834957055, 1],
  ],
  [
    "before: chained",
    (o) => {
      const { ConstantLR, LinearLR, ExponentialLR } = schedules;
      const parts = [
        new ConstantLR(o, { factor: 0.5, totalIters: 2 }),
        new LinearLR(o, { startFactor: 0.5, totalIters: 4 }),
        new ExponentialLR(o, { gamma: 0.5 }),
      ];
      const first = new schedules.ChainedScheduler(parts);
      return new schedules.SequentialLR(o, {
        schedulers: [first, new ExponentialLR(o, { gamma: 0.5 })],
        milestones: [4],
      });
    },
    [0.125, 0.078125, 0.09375, 0.0546875, 1, 0.5, 0.25, 0.125],
  ],
  [
    "CosineAnnealingLR over and over",
    (o) => new schedules.CosineAnnealingLR(o, { tMax: 2, etaMin: 0.25 }),
    [1, 0.625, 0.25, 0.625, 1, 0.625, 0.25, 0.625, 1],
  ],
  [
    "CosineAnnealingWarmRestarts of one length",
    (o) => new schedules.CosineAnnealingWarmRestarts(o, { t0: 3, etaMin: 0.25 }),
    [1, 0.8125, 0.4375, 1, 0.8125, 0.4375, 1],
  ],
  [
    "CyclicLR, triangular",
    (o) => new schedules.CyclicLR(o, { baseLr: 0.25, maxLr: 1, stepSizeUp: 2, stepSizeDown: 3 }),
    [0.25, 0.625, 1, 0.75, 0.5, 0.25, 0.625],
    [0.9, 0.85, 0.8, 2.5 / 3, 2.6 / 3, 0.9, 0.85],
  ],
  [
    "CyclicLR, exp_range",
    (o) =>
      new schedules.CyclicLR(o, {
        baseLr: 0.25,
        maxLr: 1,
        stepSizeUp: 2,
        mode: "exp_range",
        gamma: 0.5,
        baseMomentum: 0.5,
        maxMomentum: 0.75,
      }),
    [0.25, 0.4375, 0.4375, 0.296875, 0.25, 0.26171875],
    [0.75, 0.6875, 0.6875, 0.734375, 0.75, 0.74609375],
  ],
  [
    "CyclicLR by cycles",
    (o) =>
      new schedules.CyclicLR(o, { baseLr: 0.25, maxLr: 1, stepSizeUp: 2, scaleFn: harmonic, cycleMomentum: false }),
    [0.25, 0.4375, 0.625, 0.4375, 0.25, 0.375, 0.5],
    new Array(7).fill(0.9),
  ],
  [
    "CyclicLR by iterations",
    (o) =>
      new schedules.CyclicLR(o, { baseLr: 0.25, maxLr: 1, stepSizeUp: 2, scaleFn: harmonic, scaleMode: "iterations" }),
    [0.25, 0.4375, 0.5, 0.34375, 0.25, 0.3125],
    [0.9, 0.875, 2.6 / 3, 0.8875, 0.9, 10.7 / 12],
  ],
  [
    "OneCycleLR, linear",
    (o) =>
      new schedules.OneCycleLR(o, {
        maxLr: 1,
        epochs: 2,
        stepsPerEpoch: 5,
        pctStart: 0.4,
        annealStrategy: "linear",
        divFactor: 4,
        finalDivFactor: 2,
        baseMomentum: 0.5,
        maxMomentum: 0.75,
      }),
    [0.25, 0.5, 0.75, 1, 10.25 / 12, 8.5 / 12, 0.5625, 5 / 12, 3.25 / 12],
    [0.75, 2 / 3, 1.75 / 3, 0.5, 1.625 / 3, 1.75 / 3, 0.625, 2 / 3, 2.125 / 3],
  ],
  [
    "OneCycleLR in three phases",
    (o) =>
      new schedules.OneCycleLR(o, {
        maxLr: 1,
        totalSteps: 10,
        pctStart: 0.4,
        threePhase: true,
        divFactor: 4,
        finalDivFactor: 2,
      }),
    [0.25, 0.4375, 0.8125, 1, 0.8125, 0.4375, 0.25, 0.21875, 0.15625],
    [0.95, 0.925, 0.875, 0.85, 0.875, 0.925, 0.95, 0.95, 0.95],
  ],
  [
    "OneCycleLR without momentum",
    (o) =>
      new schedules.OneCycleLR(o, {
        maxLr: 1,
        totalSteps: 10,
        pctStart: 0.5,
        divFactor: 4,
        finalDivFactor: 2,
        cycleMomentum: false,
      }),
    [0.25, 0.359834957055, 0.625, 0.890165042945, 1, 0.916444935039, 0.697694935039, 0.427305064961],
    new Array(8).fill(0.9),
  ],
];

describe("PyTorch's traces", () => {
  it.each([...table, ...further])("%s", (_name, make, expected, betas) => {
    const optimizer = { groups: [{ lr: 1, betas: [0.9, 0.999] as [number, number] }] };
    const schedule = make(optimizer);
    for (const [epoch, lr] of expected.entries()) {
      expect(schedule.lastEpoch).toBe(epoch);
      expect(schedule.lastLr).toEqual([optimizer.groups[0]?.lr]);
      expect(Math.abs((optimizer.groups[0]?.lr as number) - lr)).toBeLessThanOrEqual(1e-12);
      if (betas) expect(optimizer.groups[0]!.betas[0]).toBeCloseTo(betas[epoch]!, 12);
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

  const zigzag = [1, 1.05, 1.2, 1.1, 1.25, 1.19, 1.3, 1.2, 1.2, 1.29, 2, 1];
  const [early, late] = [
    [1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625],
    [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25],
  ];
  it.each<[schedules.ReduceLROnPlateauOptions, number[], number[]]>([
    [{ mode: "max", threshold: 0.1 }, late, early],
    [{ mode: "max", threshold: 0.1, thresholdMode: "abs" }, late, early],
    [{ threshold: 0.1, thresholdMode: "abs" }, early, late],
    [{ threshold: 0.1 }, early, [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125]],
    [
      { threshold: 0.1, minLr: 0.2 },
      early.map((lr) => Math.max(lr, 0.2)),
      [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2],
    ],
    [{ eps: 0.2 }, early.map((lr) => Math.max(lr, 0.25)), [1, 1, 1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]],
  ])("ReduceLROnPlateau with %j, of what rises and of what falls", (options, rising, falling) => {
    for (const [metrics, expected] of [
      [zigzag, rising],
      [zigzag.map((metric) => 3 - metric), falling],
    ] as const) {
      const optimizer = { groups: [{ lr: 1 }] };
      const schedule = new schedules.ReduceLROnPlateau(optimizer, {
        factor: 0.5,
        patience: 1,
        cooldown: 1,
        ...options,
      });
      const lrs = metrics.map((metric) => {
        schedule.step(metric);
        return schedule.lastLr[0];
      });
      expect(lrs).toEqual(expected);
    }
  });

  it("ConstantLR from nothing goes up to the base, which PyTorch divides by 0 for", () => {
    const optimizer = { groups: [{ lr: 1 }] };
    const schedule = new schedules.ConstantLR(optimizer, { factor: 0, totalIters: 2 });
    const lrs = [0, 1, 2].map(() => {
      const { lr } = optimizer.groups[0]!;
      schedule.step();
      return lr;
    });
    expect(lrs).toEqual([0, 0, 1]);
  });
});
