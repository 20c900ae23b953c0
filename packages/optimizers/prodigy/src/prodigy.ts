/** Prodigy: options, rules, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkBoolean,
  checkNotNegative,
  checkValue,
  defineRule,
  div,
  mul,
  type Rule,
  StagedOptimizer,
  type Stages,
  sqrt,
  sub,
} from "@opt/core";
import { BUFFERS, ESTIMATE, estimatedBy, gradientRule, sumShapes, together } from "./distance";

export interface ProdigyOptions extends BaseOptions {
  /** Factor of the learning rate that is found, >= 0: what a schedule changes. Default 1. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Decay rate of the sums by which d is estimated, in [0, 1), null for sqrt(betas[1]). Default null. */
  beta3: number | null;
  /** Added to the denominator, times d, >= 0. Default 1e-8. */
  eps: number;
  /** Decoupled weight decay, times d, >= 0. Default 0. */
  weightDecay: number;
  /** The first d, above 0: less than the distance to any solution. Default 1e-6. */
  d0: number;
  /** Factor of the estimates of d, >= 0: 0.5 or 2 for smaller or larger steps. Default 1. */
  dCoef: number;
  /** Leaves the learning rate out of the estimate's denominator, for warm-ups. Default false. */
  safeguardWarmup: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** Adam's step of d times the gradient, in optax's order of operations. */
const prodigyRule = /* @__PURE__ */ defineRule({
  name: "prodigy",
  buffers: BUFFERS,
  nonNegative: ["expAvgSq"],
  scalars: ["beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", "eps", "weightDecay", "rate", "d", "nextD"],
  update({ param, expAvg, expAvgSq, direction }, h) {
    const scaled = mul(h.d, direction);
    const nextAvg = add(mul(h.beta1, expAvg), mul(h.oneMinusBeta1, scaled));
    const nextSq = add(mul(h.beta2, expAvgSq), mul(mul(h.oneMinusBeta2, scaled), scaled));
    const stepSize = mul(h.d, h.rate);
    const decay = mul(mul(h.weightDecay, stepSize), param);
    const step = div(mul(stepSize, nextAvg), add(sqrt(nextSq), mul(h.nextD, h.eps)));
    return { param: sub(param, add(decay, step)), expAvg: nextAvg, expAvgSq: nextSq };
  },
});

/** How the sums go on, and the numerator of the estimate. */
const estimateRules = /* @__PURE__ */ [false, true].map((safeguardWarmup) =>
  defineRule({
    name: safeguardWarmup ? "prodigyEstimateSafeguarded" : "prodigyEstimate",
    buffers: ESTIMATE,
    scalars: ["beta3", "rate", "d0", "dCoef"],
    update({ numerator, d, inner }, { beta3, rate, d0, dCoef }) {
      const stepSize = mul(d, rate);
      const next = add(mul(beta3, numerator), mul(mul(div(d, d0), stepSize), inner));
      const weight = div(mul(safeguardWarmup ? d : stepSize, d), d0);
      return { keep: add(beta3, 0), weight, next, share: mul(dCoef, next) };
    },
  }),
);

/** Every rule of Prodigy. */
export const prodigyOwnRules: readonly Rule[] = [...estimateRules, prodigyRule];

const DEFAULT_BETAS = [0.9, 0.999] as const;
const WHERE = "Prodigy";

const prodigy: Algorithm<ProdigyOptions> = {
  name: WHERE,
  findsRate: true,
  defaults: {
    lr: 1,
    betas: DEFAULT_BETAS,
    beta3: null,
    eps: 1e-8,
    weightDecay: 0,
    d0: 1e-6,
    dCoef: 1,
    safeguardWarmup: false,
    maximize: false,
  },
  validate({ betas, beta3, d0, safeguardWarmup, ...numbers }) {
    checkBetas(WHERE, betas, DEFAULT_BETAS);
    const isRate = beta3 === null || (typeof beta3 === "number" && beta3 >= 0 && beta3 < 1);
    checkValue(isRate, WHERE, "beta3", "in [0, 1), or null for sqrt(betas[1])", beta3, "The default is null.");
    for (const name of ["eps", "weightDecay", "dCoef"] as const) checkNotNegative(WHERE, name, numbers[name]);
    const isDistance = Number.isFinite(d0) && d0 > 0;
    checkValue(isDistance, WHERE, "d0", "a number above 0", d0, "The default is 1e-6.");
    checkBoolean(WHERE, "safeguardWarmup", safeguardWarmup);
  },
  rule: () => prodigyRule,
  stageState: (shape) => ({ initial_param: shape, ...sumShapes(shape) }),
  stageScalars: ["d", "nextD"],
  initialState: ({ d0 }) => ({ initial_param: "param", d: d0 }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars({ lr, betas: [beta1, beta2], beta3, eps, weightDecay, d0, dCoef }, { step }, { div, mul, pow, sqrt, sub }) {
    const correction = div(sqrt(sub(1, pow(beta2, step))), sub(1, pow(beta1, step)));
    return {
      beta1,
      oneMinusBeta1: sub(1, beta1),
      beta2,
      oneMinusBeta2: sub(1, beta2),
      beta3: beta3 ?? sqrt(beta2),
      eps,
      weightDecay,
      rate: mul(lr, correction),
      d0,
      dCoef,
    };
  },
};

const stages: Stages<ProdigyOptions> = {
  rule: () => gradientRule,
  transform(gradients, step) {
    const { params, states, options } = step;
    const inners = gradients.map((gradient, i) =>
      mul(gradient, sub(states[i]!.get("initial_param")!, params[i]!)).sum(),
    );
    return estimatedBy(gradients, step, estimateRules[options.safeguardWarmup ? 1 : 0]!, inners);
  },
  transformedBy: ["safeguardWarmup"],
  together,
};

/**
 * Prodigy: AdamW that finds its learning rate d, the distance from the start to a solution, from below.
 *
 *     m = beta1 m + (1 - beta1) d grad          v = beta2 v + (1 - beta2) (d grad)^2          c = lr * sqrt(1 - beta2^t) / (1 - beta1^t)
 *     r = beta3 r + c d^2 / d0 * <grad, p0 - p>          s = beta3 s + c d^2 / d0 * grad
 *     d' = max(d, dCoef * sum of all r / sum of all |s|)
 *     p -= c d * (m / (sqrt(v) + d' eps) + weightDecay * p)          d = d'
 *
 * The sums are over all parameters of the optimizer that have a gradient: d is one number for all of them, and each one's state has it.
 * A parameter that begins later begins with d0 and has the others' d from its second step on.
 * The numbers are those of optax.contrib.prodigy. Source: Mishchenko and Defazio, "Prodigy: An Expeditiously Adaptive Parameter-Free Learner" (2023).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; UNSUPPORTED for `stateDType`; BAD_DTYPE for complex parameters;
 * DEVICE_MISMATCH in a step of parameters on two devices; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Prodigy } from "@opt/prodigy";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Prodigy([w]);
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Prodigy extends StagedOptimizer<ProdigyOptions> {
  protected override define(): Algorithm<ProdigyOptions> {
    return prodigy;
  }

  protected override stages(): Stages<ProdigyOptions> {
    return stages;
  }
}
