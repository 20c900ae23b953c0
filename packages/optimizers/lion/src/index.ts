/** Lion: options, rule, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  defineRule,
  less,
  mul,
  Optimizer,
  type Rule,
  where,
} from "@opt/core";

export interface LionOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-4. */
  lr: number;
  /** Weight of the momentum in the direction, and decay rate of the momentum, each in [0, 1). Default [0.9, 0.99]. */
  betas: readonly [number, number];
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** The update of one element in optax's order of operations: without weight decay, and with it. The sign of NaN is 0. */
export const lionRules: readonly Rule[] = /* @__PURE__ */ [false, true].map((decays) =>
  defineRule({
    name: decays ? "lionDecoupled" : "lion",
    buffers: ["param", "grad", "expAvg"],
    scalars: ["beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", ...(decays ? (["decay"] as const) : []), "negLr"],
    update({ param, grad, expAvg }, { beta1, oneMinusBeta1, beta2, oneMinusBeta2, decay, negLr }) {
      const direction = add(mul(oneMinusBeta1, grad), mul(beta1, expAvg));
      const sign = where(less(0, direction), 1, where(less(direction, 0), -1, 0));
      const step = decays ? add(sign, mul(decay, param)) : sign;
      return {
        param: add(param, mul(negLr, step)),
        expAvg: add(mul(oneMinusBeta2, grad), mul(beta2, expAvg)),
      };
    },
  }),
);

const DEFAULT_BETAS = [0.9, 0.99] as const;

const lion: Algorithm<LionOptions> = {
  name: "Lion",
  isDecoupled: true,
  defaults: { lr: 1e-4, betas: DEFAULT_BETAS, weightDecay: 0, maximize: false },
  validate({ betas, weightDecay }) {
    checkBetas("Lion", betas, DEFAULT_BETAS);
    checkNotNegative("Lion", "weightDecay", weightDecay);
  },
  rule: ({ weightDecay }) => lionRules[weightDecay === 0 ? 0 : 1]!,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, betas: [beta1, beta2], weightDecay }, _counters, { sub, neg }) => ({
    beta1,
    oneMinusBeta1: sub(1, beta1),
    beta2,
    oneMinusBeta2: sub(1, beta2),
    decay: weightDecay,
    negLr: neg(lr),
  }),
};

/**
 * Lion: the sign of an average of the gradient and the momentum, so that all elements move equally far.
 *
 *     c = beta1 m + (1 - beta1) grad          p -= lr * (sign(c) + weightDecay * p)          m = beta2 m + (1 - beta2) grad
 *
 * It wants an lr of a third to a tenth of AdamW's, and a weight decay that is larger by as much. The numbers are those of optax.lion,
 * bit for bit in float32 where optax is not compiled; its weight decay is 1e-3 unless given.
 * Source: Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Lion } from "@opt/lion";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Lion([w], { lr: 0.01, weightDecay: 0.1 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Lion extends Optimizer<LionOptions> {
  protected override define(): Algorithm<LionOptions> {
    return lion;
  }
}
