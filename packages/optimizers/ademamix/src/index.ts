/** AdEMAMix: options, rule, scalars and class. */
import {
  type Algorithm,
  type Arithmetic,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  defineRule,
  div,
  fma,
  mul,
  Optimizer,
  type Rule,
  sqrt,
} from "@opt/core";

export interface AdEMAMixOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the fast average, of the squares and of the slow average, each in [0, 1). Default [0.9, 0.999, 0.9999]. */
  betas: readonly [number, number, number];
  /** Weight of the slow average, >= 0. Default 5. */
  alpha: number;
  /** Steps in which alpha grows from 0, >= 0. Default 0: alpha is constant. */
  tAlpha: number;
  /** Steps in which the third beta grows from the first, >= 0. Default 0: it is constant. */
  tBeta3: number;
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** The update of one element in the order of operations of the authors' program: without weight decay, and with it. */
export const ademamixRules: readonly Rule[] = /* @__PURE__ */ [false, true].map((decays) =>
  defineRule({
    name: decays ? "ademamixDecoupled" : "ademamix",
    buffers: ["param", "grad", "expAvgFast", "expAvgSlow", "expAvgSq"],
    nonNegative: ["expAvgSq"],
    scalars: [
      ...(["beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", "beta3", "oneMinusBeta3"] as const),
      ...(["biasCorrection1", "biasCorrection2Sqrt", "alpha", "eps", "negLr"] as const),
      ...(decays ? (["decay"] as const) : []),
    ],
    update({ param, grad, expAvgFast, expAvgSlow, expAvgSq }, h) {
      const fast = fma(h.oneMinusBeta1, grad, mul(expAvgFast, h.beta1));
      const slow = fma(h.oneMinusBeta3, grad, mul(expAvgSlow, h.beta3));
      const squares = fma(mul(h.oneMinusBeta2, grad), grad, mul(expAvgSq, h.beta2));
      const mixed = add(div(fast, h.biasCorrection1), mul(h.alpha, slow));
      const ratio = div(mixed, add(div(sqrt(squares), h.biasCorrection2Sqrt), h.eps));
      const step = decays ? fma(h.decay, param, ratio) : ratio;
      return { param: add(param, mul(h.negLr, step)), expAvgFast: fast, expAvgSlow: slow, expAvgSq: squares };
    },
  }),
);

const DEFAULT_BETAS = [0.9, 0.999, 0.9999] as const;

/** The part of a warm-up that is done. */
function progress(step: number, length: number, { div, maximum }: Arithmetic): number {
  return div(step, maximum(length, step));
}

/** The third beta at a step: the half-life of the slow average grows linearly (section 3 of the paper). */
function beta3At(step: number, { betas: [beta1, , beta3], tBeta3 }: AdEMAMixOptions, arithmetic: Arithmetic): number {
  const { add, sub, div, less, where, log, exp } = arithmetic;
  const done = progress(step, tBeta3, arithmetic);
  const growing = exp(div(1, add(div(sub(1, done), log(beta1)), div(done, log(beta3)))));
  return where(less(done, 1), growing, beta3);
}

const ademamix: Algorithm<AdEMAMixOptions> = {
  name: "AdEMAMix",
  isDecoupled: true,
  defaults: {
    lr: 1e-3,
    betas: DEFAULT_BETAS,
    alpha: 5,
    tAlpha: 0,
    tBeta3: 0,
    eps: 1e-8,
    weightDecay: 0,
    maximize: false,
  },
  validate(options) {
    checkBetas("AdEMAMix", options.betas, DEFAULT_BETAS);
    for (const name of ["alpha", "tAlpha", "tBeta3", "eps", "weightDecay"] as const) {
      checkNotNegative("AdEMAMix", name, options[name]);
    }
  },
  rule: ({ weightDecay }) => ademamixRules[weightDecay === 0 ? 0 : 1]!,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars(options, { step }, arithmetic) {
    const { lr, betas, alpha, tAlpha, eps, weightDecay } = options;
    const { sub, mul, neg, pow, sqrt } = arithmetic;
    const beta3 = beta3At(step, options, arithmetic);
    return {
      beta1: betas[0],
      oneMinusBeta1: sub(1, betas[0]),
      beta2: betas[1],
      oneMinusBeta2: sub(1, betas[1]),
      beta3,
      oneMinusBeta3: sub(1, beta3),
      biasCorrection1: sub(1, pow(betas[0], step)),
      biasCorrection2Sqrt: sqrt(sub(1, pow(betas[1], step))),
      alpha: mul(progress(step, tAlpha, arithmetic), alpha),
      eps,
      decay: weightDecay,
      negLr: neg(lr),
    };
  },
};

/**
 * AdEMAMix: AdamW with a second, slow average of the gradients, which remembers thousands of steps.
 *
 *     a = beta1 a + (1 - beta1) grad          b = beta3 b + (1 - beta3) grad          v = beta2 v + (1 - beta2) grad^2
 *     p -= lr * ((a / (1 - beta1^t) + alpha b) / (sqrt(v / (1 - beta2^t)) + eps) + weightDecay * p)
 *
 * With warm-ups, alpha and beta3 at step t are `min(t / tAlpha, 1) alpha` and, with s = t / tBeta3 below 1,
 * `exp(1 / ((1 - s) / log(beta1) + s / log(beta3)))`. The authors take as many steps as the whole training has.
 * Source: Pagliardini, Ablin & Grangier, "The AdEMAMix Optimizer: Better, Faster, Older" (2024), and its authors' program.
 * optax.contrib.ademamix counts the schedules from 0, and rounds the bias corrections to float32.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { AdEMAMix } from "@opt/ademamix";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new AdEMAMix([w], { lr: 0.01, tAlpha: 1000, tBeta3: 1000 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class AdEMAMix extends Optimizer<AdEMAMixOptions> {
  protected override define(): Algorithm<AdEMAMixOptions> {
    return ademamix;
  }
}
