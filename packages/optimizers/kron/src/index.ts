/** Kron: options, rules, scalars and class. */
import {
  type Algorithm,
  type BaseOptions,
  checkNotNegative,
  checkValue,
  defineRule,
  fma,
  type Rule,
  StagedOptimizer,
  type Stages,
} from "@opt/core";
import { phaseOf, stageRules, stateShapes, whitened } from "./whitening";

export interface KronOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rate of the running average of gradients, in [0, 1). Default 0.9. */
  momentum: number;
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Learning rate of the preconditioner's factors, >= 0. Default 0.1. */
  preconditionerLr: number;
  /**
   * How many of the steps update the factors, in (0, 1], at equal distances. Default null: all of the first 500, then fewer and fewer, from step
   * 4000 on 3 of 100.
   */
  updateProbability: number | null;
  /** Longer sides have a diagonal factor. Default 8192. */
  maxSizeTriangular: number;
  /** "oneDiagonal": the longest side of each parameter has a diagonal factor. "allDiagonal": all have. Default null. */
  memorySaveMode: "oneDiagonal" | "allDiagonal" | null;
  /** Of the noise that updates compare gradients with, a whole number from 0 on. Default 0. */
  seed: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const BUFFERS = ["param", "grad", "direction"] as const;

const gradientRule = /* @__PURE__ */ defineRule({
  name: "kronGradient",
  buffers: BUFFERS,
  scalars: [],
  update: ({ grad }) => ({ direction: grad }),
});

const kronRule = /* @__PURE__ */ defineRule({
  name: "kron",
  buffers: BUFFERS,
  scalars: ["negLr", "weightDecay"],
  update: ({ param, direction }, { negLr, weightDecay }) => ({
    param: fma(negLr, fma(weightDecay, param, direction), param),
  }),
});

/** Every rule, for kernel builds and tests. */
export const kronRules: readonly Rule[] = [gradientRule, ...stageRules, kronRule];

const WHERE = "Kron";

const isWhole = (value: number) => Number.isSafeInteger(value) && value >= 0;
const DEFAULT = "Leave it out for the default.";

const kron: Algorithm<KronOptions> = {
  name: WHERE,
  isDecoupled: true,
  defaults: {
    lr: 1e-3,
    momentum: 0.9,
    weightDecay: 0,
    preconditionerLr: 0.1,
    updateProbability: null,
    maxSizeTriangular: 8192,
    memorySaveMode: null,
    seed: 0,
    maximize: false,
  },
  validate({ momentum, weightDecay, preconditionerLr, updateProbability, maxSizeTriangular, memorySaveMode, seed }) {
    const isNumber = (value: unknown) => typeof value === "number";
    checkValue(isNumber(momentum) && momentum >= 0 && momentum < 1, WHERE, "momentum", "in [0, 1)", momentum, DEFAULT);
    checkNotNegative(WHERE, "weightDecay", weightDecay);
    checkNotNegative(WHERE, "preconditionerLr", preconditionerLr);
    const isShare =
      updateProbability === null || (isNumber(updateProbability) && updateProbability > 0 && updateProbability <= 1);
    checkValue(isShare, WHERE, "updateProbability", "in (0, 1], or null for the schedule", updateProbability, DEFAULT);
    checkValue(
      isWhole(maxSizeTriangular),
      WHERE,
      "maxSizeTriangular",
      "a whole number from 0 on",
      maxSizeTriangular,
      DEFAULT,
    );
    const modes = [null, "oneDiagonal", "allDiagonal"];
    checkValue(
      modes.includes(memorySaveMode),
      WHERE,
      "memorySaveMode",
      '"oneDiagonal", "allDiagonal" or null',
      memorySaveMode,
      DEFAULT,
    );
    checkValue(isWhole(seed), WHERE, "seed", "a whole number from 0 on", seed, DEFAULT);
  },
  rule: () => kronRule,
  stageState: stateShapes,
  initialCounters: { step: 0, since_update: 0, updates: 0 },
  /** The factors are updated in the step in which the chances since their last update add up to 1. */
  advance(
    { step, since_update: since, updates },
    { updateProbability },
    { add, exp, less, maximum, minimum, mul, sub, where },
  ) {
    const scheduled = maximum(0.03, minimum(1, exp(mul(0.001, sub(500, step)))));
    const chance = updateProbability ?? scheduled;
    const waited = add(since!, 1);
    const waits = less(mul(waited, chance), 1);
    return { step: add(step, 1), since_update: where(waits, waited, 0), updates: add(updates!, where(waits, 0, 1)) };
  },
  scalars: ({ lr, momentum, weightDecay, preconditionerLr }, { step }, { neg, pow, sub }) => ({
    negLr: neg(lr),
    weightDecay,
    momentum,
    oneMinusMomentum: sub(1, momentum),
    biasCorrection: sub(1, pow(momentum, step)),
    negPreconditionerLr: neg(preconditionerLr),
  }),
};

const stages: Stages<KronOptions> = {
  rule: () => gradientRule,
  transform: whitened,
  transformedBy: ["maxSizeTriangular", "memorySaveMode", "seed"],
  phase: phaseOf,
};

/**
 * PSGD Kron: the gradient is whitened by factors that follow it, one for each side of a parameter.
 *
 *     m = momentum m + (1 - momentum) G          M = m / (1 - momentum^t)          V: normal noise
 *     A = Q1 M Q2^T          B = Q1^-T V Q2^-1          in some steps
 *     Q1 -= preconditionerLr * triu(A A^T - B B^T) / |A A^T + B B^T| * Q1          Q2 by A^T A and B^T B
 *     D = Q1^T Q1 M Q2^T Q2          p -= lr * (min(1, 1.1 / rms(D)) * D + weightDecay * p)
 *
 * The norm |...| is a lower bound of the spectral norm. Every 100 updates the factors are scaled so that their largest numbers are equal.
 * Vectors and sides of one element have diagonal factors.
 * The noise depends on the seed, the step and the element alone. State of a matrix [m, n]: m n + m^2 + n^2 numbers, the squares on one rank where ranks divide the matrix.
 * Source: Li, "Stochastic Hessian Fittings with Lie Groups" (2024); trust region and schedule as kron_torch.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; UNSUPPORTED for `stateDType`; BAD_DTYPE for complex parameters; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Kron } from "@opt/kron";
 * const w = parameter([[1, 2], [3, 4]]);
 * const optimizer = new Kron([w], { lr: 0.01 });
 * for (let step = 0; step < 2; step++) {
 *   optimizer.zeroGrad();
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * }
 */
export class Kron extends StagedOptimizer<KronOptions> {
  protected override define(): Algorithm<KronOptions> {
    return kron;
  }

  protected override stages(): Stages<KronOptions> {
    return stages;
  }
}
