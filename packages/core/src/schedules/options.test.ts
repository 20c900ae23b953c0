// Options that JavaScript would let through: misspelt, of another kind, or in another place.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { OptError } from "../errors/errors";
import * as schedules from "./index";

const newOptimizer = () => ({ groups: [{ lr: 1, momentum: 0.5 }] });
type Schedule = new (optimizer: unknown, options?: unknown) => unknown;
const { ChainedScheduler, StepLR } = schedules;
const Chained = class {
  constructor(optimizer: unknown, options?: object) {
    new ChainedScheduler([new StepLR(optimizer as never, { stepSize: 1 })], options);
  }
};

/** A schedule, options that it takes, and each option as it is written elsewhere. */
const table: [string, unknown, object, string[]][] = [
  ["LambdaLR", schedules.LambdaLR, { lrLambda: () => 1 }, ["lr_lambda"]],
  ["MultiplicativeLR", schedules.MultiplicativeLR, { lrLambda: () => 1 }, ["lr_lambda"]],
  ["StepLR", schedules.StepLR, { stepSize: 2, gamma: 0.5 }, ["step_size", "gama"]],
  ["MultiStepLR", schedules.MultiStepLR, { milestones: [2], gamma: 0.5 }, ["milestone", "Gamma"]],
  ["ConstantLR", schedules.ConstantLR, { factor: 0.5, totalIters: 2 }, ["factors", "total_iters"]],
  [
    "LinearLR",
    schedules.LinearLR,
    { startFactor: 0.5, endFactor: 1, totalIters: 2 },
    ["start_factor", "end_factor", "total_iters"],
  ],
  ["ExponentialLR", schedules.ExponentialLR, { gamma: 0.5 }, ["gama"]],
  [
    "PolynomialLR",
    schedules.PolynomialLR,
    { totalIters: 2, power: 2, endLr: 0, cycle: true },
    ["total_iters", "powr", "end_lr", "cycles"],
  ],
  ["CosineAnnealingLR", schedules.CosineAnnealingLR, { tMax: 2, etaMin: 0 }, ["T_max", "eta_min"]],
  [
    "CosineAnnealingWarmRestarts",
    schedules.CosineAnnealingWarmRestarts,
    { t0: 2, tMult: 2, etaMin: 0 },
    ["T_0", "T_mult", "eta_min"],
  ],
  [
    "CyclicLR",
    schedules.CyclicLR,
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
    ["base_lr", "max_lr", "step_size_up", "step_size_down", "modes", "gama", "scale_fn", "scale_mode"].concat([
      "cycle_momentum",
      "base_momentum",
      "max_momentum",
    ]),
  ],
  [
    "OneCycleLR",
    schedules.OneCycleLR,
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
    ["max_lr", "total_steps", "epoch", "steps_per_epoch", "pct_start", "anneal_strategy", "cycle_momentum"].concat([
      "base_momentum",
      "max_momentum",
      "div_factor",
      "final_div_factor",
      "three_phase",
    ]),
  ],
  [
    "ReduceLROnPlateau",
    schedules.ReduceLROnPlateau,
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
    ["modes", "factors", "patients", "tresholt", "threshold_mode", "cool_down", "min_lr", "epsi"].concat([
      "ignore_metrics_in_cooldown",
    ]),
  ],
  ["NoamLR", schedules.NoamLR, { dModel: 2, warmupSteps: 2 }, ["d_model", "warmup_steps"]],
  ["NaturalExpLR", schedules.NaturalExpLR, { gamma: 0.5 }, ["gama"]],
  ["InverseTimeLR", schedules.InverseTimeLR, { gamma: 0.5 }, ["gama"]],
  ["PiecewiseLR", schedules.PiecewiseLR, { boundaries: [1], values: [1, 2] }, ["boundary_s", "value"]],
  [
    "LinearWarmupLR",
    schedules.LinearWarmupLR,
    { warmupSteps: 2, startLr: 0, endLr: 1, after: undefined },
    ["warmup_steps", "start_lr", "end_lr", "afters"],
  ],
  ["SequentialLR", schedules.SequentialLR, { schedulers: [], milestones: [] }, ["schedules", "milestone"]],
  ["ChainedScheduler", Chained, { optimizer: undefined }, ["optimiser"]],
];

function messageOf(body: () => unknown): string {
  try {
    body();
  } catch (error) {
    if (error instanceof OptError) return error.message;
    throw error;
  }
  return "nothing was rejected";
}

describe.each(table)("%s", (name, made, options, misspelt) => {
  const make = (options: unknown) => new (made as Schedule)(newOptimizer(), options);

  it("takes its options, and names the right one for a misspelt", () => {
    if (name !== "SequentialLR") make(options); // whose schedules have to be of the same optimizer
    const names = Object.keys(options);
    expect(misspelt.length).toBe(names.length);
    misspelt.forEach((wrong, i) => {
      expect(messageOf(() => make({ ...options, [wrong]: 1 }))).toMatch(
        `[${name}] there is no option ${wrong}. Did you mean ${names[i]}?`,
      );
    });
  });

  it("rejects anything but an object of options", () => {
    for (const wrong of [null, 0.5, "0.5", [1], () => 1, new Map()]) expectCode("BAD_ARGUMENT", () => make(wrong));
  });

  it("rejects switches that are neither true nor false", () => {
    const switches = Object.entries(options).filter(([, value]) => value === true);
    for (const [flag] of switches)
      for (const wrong of [0, "yes", null]) expectCode("BAD_ARGUMENT", () => make({ ...options, [flag]: wrong }));
  });
});

describe("at the edges of what is allowed", () => {
  const { groups } = newOptimizer();
  const edges: [string, (optimizer: { groups: typeof groups }) => schedules.LRScheduler, number[]][] = [
    ["ConstantLR of 0", (o) => new schedules.ConstantLR(o, { factor: 0, totalIters: 1 }), [0, 1, 1]],
    ["ConstantLR of 1", (o) => new schedules.ConstantLR(o, { factor: 1, totalIters: 1 }), [1, 1, 1]],
    [
      "LinearLR down to 0",
      (o) => new schedules.LinearLR(o, { startFactor: 1, endFactor: 0, totalIters: 1 }),
      [1, 0, 0],
    ],
    [
      "LinearLR up to 1",
      (o) => new schedules.LinearLR(o, { startFactor: 0.5, endFactor: 1, totalIters: 1 }),
      [0.5, 1, 1],
    ],
    ["StepLR of 0", (o) => new schedules.StepLR(o, { stepSize: 1, gamma: 0 }), [1, 0, 0]],
    ["StepLR by default", (o) => new schedules.StepLR(o, { stepSize: 2 }), [1, 1, 0.1]],
    [
      "MultiStepLR from 0 on",
      (o) => new schedules.MultiStepLR(o, { milestones: [0, 2], gamma: 0.5 }),
      [0.5, 0.5, 0.25],
    ],
    ["MultiStepLR by default", (o) => new schedules.MultiStepLR(o, { milestones: new Set([1]) }), [1, 0.1, 0.1]],
    ["ExponentialLR of 0", (o) => new schedules.ExponentialLR(o, { gamma: 0 }), [1, 0, 0]],
    ["InverseTimeLR of 0", (o) => new schedules.InverseTimeLR(o, { gamma: 0 }), [1, 1, 1]],
    ["NaturalExpLR of 0", (o) => new schedules.NaturalExpLR(o, { gamma: 0 }), [1, 1, 1]],
    ["PolynomialLR of 1", (o) => new schedules.PolynomialLR(o, { totalIters: 1 }), [1, 0, 0]],
    ["PolynomialLR by default", (o) => new schedules.PolynomialLR(o), [1, 0.8, 0.6]],
    ["CosineAnnealingLR of 1", (o) => new schedules.CosineAnnealingLR(o, { tMax: 1 }), [1, 0, 1]],
    ["CosineAnnealingWarmRestarts of 1", (o) => new schedules.CosineAnnealingWarmRestarts(o, { t0: 1 }), [1, 1, 1]],
    ["LinearWarmupLR of 1", (o) => new schedules.LinearWarmupLR(o, { warmupSteps: 1 }), [0, 1, 1]],
    [
      "PiecewiseLR from 0 on",
      (o) => new schedules.PiecewiseLR(o, { boundaries: [0, 1], values: [3, 2, 1] }),
      [2, 1, 1],
    ],
    ["PiecewiseLR of one", (o) => new schedules.PiecewiseLR(o, { boundaries: [], values: [3] }), [3, 3, 3]],
    [
      "OneCycleLR of one step",
      (o) => new schedules.OneCycleLR(o, { maxLr: 1, totalSteps: 1, pctStart: 1, baseMomentum: 0, maxMomentum: 0 }),
      [1],
    ],
    [
      "OneCycleLR without a rise",
      (o) =>
        new schedules.OneCycleLR(o, { maxLr: 1, epochs: 1, stepsPerEpoch: 3, pctStart: 0, annealStrategy: "linear" }),
      [2 / 3, 1 / 3, 0],
    ],
    ["CyclicLR of 1", (o) => new schedules.CyclicLR(o, { baseLr: 0, maxLr: 1, stepSizeUp: 1, gamma: 0 }), [0, 1, 0]],
    ["LambdaLR of each group", (o) => new schedules.LambdaLR(o, { lrLambda: [(e) => e] }), [0, 1, 2]],
    [
      "SequentialLR at once",
      (o) =>
        new schedules.SequentialLR(o, {
          schedulers: [new schedules.ConstantLR(o, { factor: 0.5 }), new schedules.ExponentialLR(o, { gamma: 0.5 })],
          milestones: [0],
        }),
      [1, 0.5, 0.25],
    ],
  ];
  it.each(edges)("%s", (_, make, expected) => {
    const optimizer = newOptimizer();
    const schedule = make(optimizer);
    const trace = expected.map((_, epoch) => {
      if (epoch > 0) schedule.step();
      return optimizer.groups[0]!.lr;
    });
    for (const [epoch, lr] of trace.entries()) expect(lr, `epoch ${epoch}`).toBeCloseTo(expected[epoch]!, 3);
  });

  it("ReduceLROnPlateau with nothing to spare", () => {
    const optimizer = newOptimizer();
    const none = { factor: 0.5, patience: 0, threshold: 0, cooldown: 0, minLr: 0, eps: 0 };
    const schedule = new schedules.ReduceLROnPlateau(optimizer, none);
    const trace = [1, 1, 0.5, 0.5, Number.NaN].map((metric) => {
      schedule.step(metric);
      return optimizer.groups[0]!.lr;
    });
    expect(trace).toEqual([1, 0.5, 0.5, 0.25, 0.125]);
  });
});
