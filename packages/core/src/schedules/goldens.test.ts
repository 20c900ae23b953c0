// Learning rates of PyTorch 2.13 from the base lr 1; of what PyTorch lacks, of PaddlePaddle's documented formulas, worked out by hand.
import { describe, expect, it } from "vitest";
import { make } from "../../testing/schedules/make";
import type { LRScheduler, ScheduledOptimizer } from "./index";
import * as schedules from "./index";

const E95 = [1, 0.95, 0.9025, 0.857375, 0.81450625, 0.7737809374999998, 0.7350918906249998, 0.6983372960937497];
const E90 = [1, 0.9, 0.81, 0.729, 0.6561, 0.59049, 0.531441, 0.4782969, 0.43046721, 0.387420489];
const C5 = [0.9140576474687263, 0.6890576474687263, 0.41094235253127365, 0.1859423525312737];
const harmonic = (x: number) => 1 / (1 + x);

/** A schedule, its options, and the rates of the first epochs. */
type Trace = [name: string, options: object, lrs: number[]];

const table: Trace[] = [
  ["LambdaLR", { lrLambda: (e: number) => 0.95 ** e }, [...E95, 0.6634204312890623, 0.6302494097246091]],
  ["MultiplicativeLR", { lrLambda: () => 0.95 }, [...E95, 0.6634204312890623, 0.6302494097246091, 0.5987369392383786]],
  ["StepLR", { stepSize: 3, gamma: 0.5 }, [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125]],
  ["MultiStepLR", { milestones: [2, 5, 5], gamma: 0.1 }, [1, 1, 0.1, 0.1, 0.1, 0.001, 0.001, 0.001]],
  ["ConstantLR", { factor: 0.25, totalIters: 4 }, [0.25, 0.25, 0.25, 0.25, 1, 1, 1]],
  ["LinearLR", { startFactor: 0.2, endFactor: 1, totalIters: 5 }, [0.2, 0.36, 0.52, 0.68, 0.84, 1, 1, 1]],
  ["ExponentialLR", { gamma: 0.9 }, [...E90, 0.34867844010000015, 0.31381059609000017]],
  [
    "PolynomialLR",
    { totalIters: 8, power: 2 },
    [1, 0.765625, 0.5625, 0.390625, 0.25, 0.140625, 0.0625, 0.015625, 0, 0],
  ],
  ["CosineAnnealingLR", { tMax: 5, etaMin: 0.1 }, [1, ...C5, 0.1, ...C5.toReversed(), 1, C5[0]!]],
  ["CosineAnnealingLR", { tMax: 2, etaMin: 0.25 }, [1, 0.625, 0.25, 0.625, 1, 0.625, 0.25, 0.625, 1]],
  [
    "CosineAnnealingWarmRestarts",
    { t0: 3, tMult: 2, etaMin: 0.1 },
    [1, 0.775, 0.325, 1, 0.9397114317029974, 0.775, 0.55, 0.325, 0.16028856829700258, 1, 0.9846666218300807],
  ],
  ["CosineAnnealingWarmRestarts", { t0: 3, etaMin: 0.25 }, [1, 0.8125, 0.4375, 1, 0.8125, 0.4375, 1]],
  [
    "CyclicLR",
    { baseLr: 0.1, maxLr: 1, stepSizeUp: 3, stepSizeDown: 2, mode: "triangular2" },
    [0.1, 0.4, 0.7, 1, 0.55, 0.1, 0.25, 0.4, 0.55, 0.325, 0.1, 0.175],
  ],
  [
    "OneCycleLR",
    { maxLr: 1, totalSteps: 12 },
    [0.04, 0.3497896542195831, 0.8792851591221287, 0.9944154354509117, 0.9330129698414117, 0.811745653949763].concat([
      0.6473789976951033, 0.46263710266697505, 0.28306099820869923, 0.1334775301888306, 0.03456698742539522, 4e-6,
    ]),
  ],
  // At the edges of what is allowed.
  ["ConstantLR", { factor: 0, totalIters: 1 }, [0, 1, 1]],
  ["ConstantLR", { factor: 0, totalIters: 2 }, [0, 0, 1]], // PyTorch divides by 0
  ["ConstantLR", { factor: 1, totalIters: 1 }, [1, 1, 1]],
  // Of no iterations PyTorch never reaches the end.
  ["ConstantLR", { factor: 0.25, totalIters: 0 }, [0.25, 0.25, 0.25]],
  ["LinearLR", { startFactor: 0.25, totalIters: 0 }, [0.25, 0.25, 0.25]],
  ["PolynomialLR", { totalIters: 0 }, [1, 1, 1]],
  ["PolynomialLR", { totalIters: 2, power: 0 }, [1, 1, 1, 1]],
  ["CyclicLR", { baseLr: 0, maxLr: 1, stepSizeUp: 2, stepSizeDown: 0 }, [0, 0.5, 0, 0.5]],
  ["LinearLR", { startFactor: 1, endFactor: 0, totalIters: 1 }, [1, 0, 0]],
  ["LinearLR", { startFactor: 0.5, endFactor: 1, totalIters: 1 }, [0.5, 1, 1]],
  ["StepLR", { stepSize: 1, gamma: 0 }, [1, 0, 0]],
  ["StepLR", { stepSize: 2 }, [1, 1, 0.1]],
  ["MultiStepLR", { milestones: [0, 2], gamma: 0.5 }, [0.5, 0.5, 0.25]],
  ["MultiStepLR", { milestones: new Set([1]) }, [1, 0.1, 0.1]],
  ["ExponentialLR", { gamma: 0 }, [1, 0, 0]],
  ["InverseTimeLR", { gamma: 0 }, [1, 1, 1]],
  ["NaturalExpLR", { gamma: 0 }, [1, 1, 1]],
  ["PolynomialLR", { totalIters: 1 }, [1, 0, 0]],
  ["PolynomialLR", {}, [1, 0.8, 0.6]],
  ["CosineAnnealingLR", { tMax: 1 }, [1, 0, 1]],
  ["CosineAnnealingWarmRestarts", { t0: 1 }, [1, 1, 1]],
  ["LinearWarmupLR", { warmupSteps: 1 }, [0, 1, 1]],
  ["PiecewiseLR", { boundaries: [0, 1], values: [3, 2, 1] }, [2, 1, 1]],
  ["PiecewiseLR", { boundaries: [], values: [3] }, [3, 3, 3]],
  ["OneCycleLR", { maxLr: 1, totalSteps: 1, pctStart: 1, baseMomentum: 0, maxMomentum: 0 }, [1]],
  ["CyclicLR", { baseLr: 0, maxLr: 1, stepSizeUp: 1, gamma: 0 }, [0, 1, 0]],
  ["LambdaLR", { lrLambda: [(e: number) => e] }, [0, 1, 2]],
  // PaddlePaddle's: 64^-0.5 = 1/8; the rise has slope 4^-1.5 = 1/8 and meets e^-0.5 at e = 4.
  ["NoamLR", { dModel: 64, warmupSteps: 4 }, [0, 1 / 64, 2 / 64, 3 / 64, 1 / 16, 1 / (8 * Math.sqrt(5))]],
  ["NaturalExpLR", { gamma: 0.5 }, [1, Math.exp(-0.5), Math.exp(-1), Math.exp(-1.5)]],
  ["InverseTimeLR", { gamma: 0.5 }, [1, 2 / 3, 1 / 2, 2 / 5, 1 / 3]],
  ["PiecewiseLR", { boundaries: [2, 3], values: [0.1, 0.2, 0.3] }, [0.1, 0.1, 0.2, 0.3, 0.3]],
  ["PolynomialLR", { totalIters: 4, endLr: 0.2 }, [1, 0.8, 0.6, 0.4, 0.2, 0.2]],
  [
    "PolynomialLR",
    { totalIters: 2, power: 2, endLr: 0.1, cycle: true },
    [1, 0.325, 0.1, 0.15625, 0.1, 0.1 + 0.9 / 36, 0.1],
  ],
  ["LinearWarmupLR", { warmupSteps: 4, startLr: 0.6, endLr: 1 }, [0.6, 0.7, 0.8, 0.9, 1, 1]],
];

/** After half the rate for two epochs: each begins as if alone. */
const after: Trace[] = [
  ["ConstantLR", { factor: 0.25, totalIters: 3 }, [0.25, 0.25, 0.25, 1, 1]],
  ["LinearLR", { startFactor: 0.2, endFactor: 0.9, totalIters: 4 }, [0.2, 0.375, 0.55, 0.725, 0.9, 0.9]],
  ["StepLR", { stepSize: 2, gamma: 0.5 }, [1, 1, 0.5, 0.5, 0.25]],
  ["MultiStepLR", { milestones: [0, 2, 2], gamma: 0.5 }, [0.5, 0.5, 0.125, 0.125]],
  ["MultiplicativeLR", { lrLambda: () => 0.75 }, [0.375, 0.28125, 0.2109375]],
  ["LambdaLR", { lrLambda: harmonic }, [1, 1 / 2, 1 / 3, 1 / 4]],
  ["PolynomialLR", { totalIters: 4, power: 2 }, [1, 0.5625, 0.25, 0.0625, 0, 0]],
  ["CosineAnnealingLR", { tMax: 2, etaMin: 0.25 }, [1, 0.625, 0.25, 0.625, 1, 0.625, 0.25]],
  [
    "CosineAnnealingWarmRestarts",
    { t0: 2, tMult: 2, etaMin: 0.25 },
    [1, 0.625, 1, 0.890165042945, 0.625, 0.359834957055, 1],
  ],
];

const linear = { maxLr: 1, annealStrategy: "linear", divFactor: 4, finalDivFactor: 2 };

/** Rates, and beta1 beside them. */
const moving: [string, object, number[], number[]][] = [
  [
    "CyclicLR",
    { baseLr: 0.25, maxLr: 1, stepSizeUp: 2, stepSizeDown: 3 },
    [0.25, 0.625, 1, 0.75, 0.5, 0.25, 0.625],
    [0.9, 0.85, 0.8, 2.5 / 3, 2.6 / 3, 0.9, 0.85],
  ],
  [
    "CyclicLR",
    { baseLr: 0.25, maxLr: 1, stepSizeUp: 2, mode: "exp_range", gamma: 0.5, baseMomentum: 0.5, maxMomentum: 0.75 },
    [0.25, 0.4375, 0.4375, 0.296875, 0.25, 0.26171875],
    [0.75, 0.6875, 0.6875, 0.734375, 0.75, 0.74609375],
  ],
  [
    "CyclicLR",
    { baseLr: 0.25, maxLr: 1, stepSizeUp: 2, scaleFn: harmonic, cycleMomentum: false },
    [0.25, 0.4375, 0.625, 0.4375, 0.25, 0.375, 0.5],
    new Array(7).fill(0.9),
  ],
  [
    "CyclicLR",
    { baseLr: 0.25, maxLr: 1, stepSizeUp: 2, scaleFn: harmonic, scaleMode: "iterations" },
    [0.25, 0.4375, 0.5, 0.34375, 0.25, 0.3125],
    [0.9, 0.875, 2.6 / 3, 0.8875, 0.9, 10.7 / 12],
  ],
  [
    "OneCycleLR",
    { ...linear, epochs: 2, stepsPerEpoch: 5, pctStart: 0.4, baseMomentum: 0.5, maxMomentum: 0.75 },
    [0.25, 0.5, 0.75, 1, 10.25 / 12, 8.5 / 12, 0.5625, 5 / 12, 3.25 / 12],
    [0.75, 2 / 3, 1.75 / 3, 0.5, 1.625 / 3, 1.75 / 3, 0.625, 2 / 3, 2.125 / 3],
  ],
  [
    "OneCycleLR",
    { maxLr: 1, totalSteps: 10, pctStart: 0.4, threePhase: true, divFactor: 4, finalDivFactor: 2 },
    [0.25, 0.4375, 0.8125, 1, 0.8125, 0.4375, 0.25, 0.21875, 0.15625],
    [0.95, 0.925, 0.875, 0.85, 0.875, 0.925, 0.95, 0.95, 0.95],
  ],
  [
    "OneCycleLR",
    { maxLr: 1, totalSteps: 10, pctStart: 0.5, divFactor: 4, finalDivFactor: 2, cycleMomentum: false },
    [0.25, 0.359834957055, 0.625, 0.890165042945, 1, 0.916444935039, 0.697694935039, 0.427305064961],
    new Array(8).fill(0.9),
  ],
  [
    "OneCycleLR",
    { maxLr: 1, epochs: 1, stepsPerEpoch: 3, pctStart: 0, annealStrategy: "linear", finalDivFactor: 1e300 },
    [2 / 3, 1 / 3, 0],
    [0.85 + 0.1 / 3, 0.95 - 0.1 / 3, 0.95],
  ],
];

/** Schedules of schedules. */
const composites: [string, (o: ScheduledOptimizer) => LRScheduler, number[]][] = [
  [
    "SequentialLR",
    (o) =>
      inSequence(
        o,
        [3],
        make(o, "ConstantLR", { factor: 0.1, totalIters: 2 }),
        make(o, "ExponentialLR", { gamma: 0.9 }),
      ),
    [0.1, 0.1, 1, ...E90].slice(0, 12),
  ],
  [
    "SequentialLR at once",
    (o) => inSequence(o, [0], make(o, "ConstantLR", { factor: 0.5 }), make(o, "ExponentialLR", { gamma: 0.5 })),
    [1, 0.5, 0.25],
  ],
  [
    "SequentialLR after a chain",
    (o) => {
      const chain = new schedules.ChainedScheduler([
        make(o, "ConstantLR", { factor: 0.5, totalIters: 2 }),
        make(o, "LinearLR", { startFactor: 0.5, totalIters: 4 }),
        make(o, "ExponentialLR", { gamma: 0.5 }),
      ]);
      return inSequence(o, [4], chain, make(o, "ExponentialLR", { gamma: 0.5 }));
    },
    [0.125, 0.078125, 0.09375, 0.0546875, 1, 0.5, 0.25, 0.125],
  ],
  [
    "LinearWarmupLR into a schedule",
    (o) => make(o, "LinearWarmupLR", { warmupSteps: 2, after: make(o, "ExponentialLR", { gamma: 0.5 }) }),
    [0, 0.5, 1, 0.5, 0.25],
  ],
];

const inSequence = (o: ScheduledOptimizer, milestones: number[], ...schedulers: LRScheduler[]) =>
  new schedules.SequentialLR(o, { schedulers, milestones });

function expectTrace(start: (o: ScheduledOptimizer) => LRScheduler, lrs: number[], betas?: number[]): void {
  const optimizer = { groups: [{ lr: 1, betas: [0.9, 0.999] as [number, number] }] };
  const schedule = start(optimizer);
  for (const [epoch, lr] of lrs.entries()) {
    if (epoch > 0) schedule.step();
    expect(schedule.lastEpoch).toBe(epoch);
    expect(schedule.lastLr).toEqual([optimizer.groups[0]!.lr]);
    expect(Math.abs(optimizer.groups[0]!.lr - lr), `epoch ${epoch}`).toBeLessThanOrEqual(1e-12);
    if (betas) expect(optimizer.groups[0]!.betas[0]).toBeCloseTo(betas[epoch]!, 12);
  }
}

describe("traces", () => {
  it.each([...table, ...moving])("%s %o", (name, options, lrs, betas?) =>
    expectTrace((o) => make(o, name, options), lrs, betas as number[] | undefined),
  );

  it.each(after)("%s %o, after another", (name, options, lrs) => {
    const first = (o: ScheduledOptimizer) => make(o, "ConstantLR", { factor: 0.5, totalIters: 2 });
    expectTrace((o) => inSequence(o, [2], first(o), make(o, name, options)), [0.5, 0.5, ...lrs]);
  });

  it.each(composites)("%s", (_, start, lrs) => expectTrace(start, lrs));

  it("LinearWarmupLR starts the schedule after it at its own epoch 0", () => {
    const optimizer = { groups: [{ lr: 1 }] };
    const after = new schedules.CosineAnnealingLR(optimizer, { tMax: 10 });
    const schedule = new schedules.LinearWarmupLR(optimizer, { warmupSteps: 3, after });
    expect(after.lastEpoch).toBe(-1);
    for (let step = 0; step < 5; step++) schedule.step();
    expect([schedule.lastEpoch, after.lastEpoch]).toEqual([5, 2]);
    expect(schedule.lastLr[0]).toBeCloseTo((1 + Math.cos(Math.PI / 5)) / 2, 14);
  });

  /** The rates after steps with these metrics. */
  const ratesOf = (options: schedules.ReduceLROnPlateauOptions, metrics: number[]) => {
    const schedule = new schedules.ReduceLROnPlateau({ groups: [{ lr: 1 }] }, options);
    return metrics.map((metric) => {
      schedule.step(metric);
      return schedule.lastLr[0];
    });
  };

  it.each<[schedules.ReduceLROnPlateauOptions, number[], number[]]>([
    [
      { factor: 0.5, patience: 2, cooldown: 1 },
      [1, 0.9, 0.95, 0.95, 0.95, 0.89, 0.95, 0.95, 0.95, 0.95, 0.95],
      [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25],
    ],
    [
      { factor: 0.5, patience: 0, threshold: 0, cooldown: 0, minLr: 0, eps: 0 },
      [1, 1, 0.5, 0.5, Number.NaN],
      [1, 0.5, 0.5, 0.25, 0.125],
    ],
    // 0.1 becomes the best, so 0.5 is bad; or the best is still 1.
    [{ factor: 0.5, patience: 0, cooldown: 1, ignoreMetricsInCooldown: false }, [1, 1, 0.1, 0.5], [1, 0.5, 0.5, 0.25]],
    [{ factor: 0.5, patience: 0, cooldown: 1, ignoreMetricsInCooldown: true }, [1, 1, 0.1, 0.5], [1, 0.5, 0.5, 0.5]],
  ])("ReduceLROnPlateau with %j of %j", (options, metrics, expected) =>
    expect(ratesOf(options, metrics)).toEqual(expected),
  );

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
    const all = { factor: 0.5, patience: 1, cooldown: 1, ...options };
    expect(ratesOf(all, zigzag)).toEqual(rising);
    expect(
      ratesOf(
        all,
        zigzag.map((metric) => 3 - metric),
      ),
    ).toEqual(falling);
  });
});
