/** Yogi: options, the update of one element in optax's order of operations, its numbers of a step, and the class. */
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

export interface YogiOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-2. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-3. */
  eps: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** The update of one element in optax's order of operations. */
export const yogiRule = /* @__PURE__ */ defineRule({
  name: "yogi",
  buffers: ["param", "grad", "expAvg", "expAvgSq"],
  nonNegative: ["expAvgSq"],
  scalars: ["beta1", "oneMinusBeta1", "oneMinusBeta2", "biasCorrection1", "biasCorrection2", "eps", "negLr"],
  update({ param, grad, expAvg, expAvgSq }, h) {
    const m = add(mul(h.oneMinusBeta1, grad), mul(h.beta1, expAvg));
    const square = mul(grad, grad);
    const above = sub(expAvgSq, square);
    const sign = where(less(0, above), 1, where(less(above, 0), -1, above)); // 0 and NaN stay
    const v = sub(expAvgSq, mul(mul(h.oneMinusBeta2, sign), square));
    const direction = div(div(m, h.biasCorrection1), add(sqrt(div(v, h.biasCorrection2)), h.eps));
    return { param: add(param, mul(h.negLr, direction)), expAvg: m, expAvgSq: v };
  },
});

/** Every rule, for kernel builds and tests. */
export const yogiRules: readonly Rule[] = [yogiRule];

const DEFAULT_BETAS = [0.9, 0.999] as const;
/** Both averages begin here. */
const FIRST = 1e-6;

const yogi: Algorithm<YogiOptions> = {
  name: "Yogi",
  defaults: { lr: 1e-2, betas: DEFAULT_BETAS, eps: 1e-3, maximize: false },
  validate({ betas, eps }) {
    checkBetas("Yogi", betas, DEFAULT_BETAS);
    checkNotNegative("Yogi", "eps", eps);
  },
  rule: () => yogiRule,
  initialState: () => ({ exp_avg: FIRST, exp_avg_sq: FIRST }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, betas: [beta1, beta2], eps }, { step }, { neg, pow, sub }) => ({
    beta1,
    oneMinusBeta1: sub(1, beta1),
    oneMinusBeta2: sub(1, beta2),
    biasCorrection1: sub(1, pow(beta1, step)),
    biasCorrection2: sub(1, pow(beta2, step)),
    eps,
    negLr: neg(lr),
  }),
};

/**
 * Yogi: Adam whose average of squares moves by at most (1 - beta2) grad^2, so that it does not forget large gradients at once.
 *
 *     m = beta1 m + (1 - beta1) grad          v -= (1 - beta2) sign(v - grad^2) grad^2
 *     p -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * m and v begin at 1e-6. The numbers are those of optax.yogi.
 * Source: Zaheer et al., "Adaptive Methods for Nonconvex Optimization" (2018).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Yogi } from "@opt/yogi";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Yogi([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Yogi extends Optimizer<YogiOptions> {
  protected override define(): Algorithm<YogiOptions> {
    return yogi;
  }
}
