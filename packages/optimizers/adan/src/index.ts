/** Adan: options, the update of one element in optax's order of operations, its numbers of a step, and the class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  defineRule,
  div,
  less,
  mul,
  Optimizer,
  type Rule,
  sqrt,
  sub,
  where,
} from "@opt/core";

export interface AdanOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the running averages of the gradient, of its change, and of the square of both, in [0, 1). Default [0.98, 0.92, 0.99]. */
  betas: readonly [number, number, number];
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** The update of one element in optax's order of operations: without weight decay, and with it. */
export const adanRules: readonly Rule[] = /* @__PURE__ */ [false, true].map((decays) =>
  defineRule({
    name: decays ? "adanDecoupled" : "adan",
    buffers: ["param", "grad", "expAvg", "expAvgDiff", "expAvgSq", "previousGrad"],
    nonNegative: ["expAvgSq"],
    scalars: [
      ...(["step", "beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", "beta3", "oneMinusBeta3"] as const),
      ...(["biasCorrection1", "biasCorrection2", "biasCorrection3", "eps"] as const),
      ...(decays ? (["decay"] as const) : []),
      "negLr",
    ],
    update({ param, grad, expAvg, expAvgDiff, expAvgSq, previousGrad }, h) {
      const change = where(less(h.step, 2), 0, sub(grad, previousGrad));
      const m = add(mul(h.oneMinusBeta1, grad), mul(h.beta1, expAvg));
      const v = add(mul(h.oneMinusBeta2, change), mul(h.beta2, expAvgDiff));
      const ahead = add(grad, mul(h.oneMinusBeta2, change));
      const n = add(mul(h.oneMinusBeta3, mul(ahead, ahead)), mul(h.beta3, expAvgSq));
      const corrected = add(div(m, h.biasCorrection1), mul(h.oneMinusBeta2, div(v, h.biasCorrection2)));
      const direction = div(corrected, add(sqrt(div(n, h.biasCorrection3)), h.eps));
      return {
        param: add(param, mul(h.negLr, decays ? add(direction, mul(h.decay, param)) : direction)),
        expAvg: m,
        expAvgDiff: v,
        expAvgSq: n,
        previousGrad: grad,
      };
    },
  }),
);

const DEFAULT_BETAS = [0.98, 0.92, 0.99] as const;

const adan: Algorithm<AdanOptions> = {
  name: "Adan",
  isDecoupled: true,
  defaults: { lr: 1e-3, betas: DEFAULT_BETAS, eps: 1e-8, weightDecay: 0, maximize: false },
  validate({ betas, eps, weightDecay }) {
    checkBetas("Adan", betas, DEFAULT_BETAS);
    checkNotNegative("Adan", "eps", eps);
    checkNotNegative("Adan", "weightDecay", weightDecay);
  },
  rule: ({ weightDecay }) => adanRules[weightDecay === 0 ? 0 : 1]!,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, betas: [beta1, beta2, beta3], eps, weightDecay }, { step }, { neg, pow, sub }) => ({
    step,
    beta1,
    oneMinusBeta1: sub(1, beta1),
    beta2,
    oneMinusBeta2: sub(1, beta2),
    beta3,
    oneMinusBeta3: sub(1, beta3),
    biasCorrection1: sub(1, pow(beta1, step)),
    biasCorrection2: sub(1, pow(beta2, step)),
    biasCorrection3: sub(1, pow(beta3, step)),
    eps,
    decay: weightDecay,
    negLr: neg(lr),
  }),
};

/**
 * Adan: Adam that looks ahead along the change of the gradient, by Nesterov's momentum without a second gradient.
 *
 *     d = grad - last grad (0 at first)          m = beta1 m + (1 - beta1) grad          v = beta2 v + (1 - beta2) d
 *     n = beta3 n + (1 - beta3) (grad + (1 - beta2) d)^2
 *     u = (m / (1 - beta1^t) + (1 - beta2) v / (1 - beta2^t)) / (sqrt(n / (1 - beta3^t)) + eps)          p -= lr * (u + weightDecay * p)
 *
 * The numbers are those of optax.adan without eps_root. State has the last gradient: four numbers an element in all.
 * Source: Xie et al., "Adan: Adaptive Nesterov Momentum Algorithm for Faster Optimizing Deep Models" (2022).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Adan } from "@opt/adan";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Adan([w], { lr: 0.01, weightDecay: 0.02 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Adan extends Optimizer<AdanOptions> {
  protected override define(): Algorithm<AdanOptions> {
    return adan;
  }
}
