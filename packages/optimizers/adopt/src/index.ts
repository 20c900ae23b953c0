/** ADOPT: options, the update of one element in optax's order of operations, its numbers of a step, and the class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkBoolean,
  checkNotNegative,
  defineRule,
  div,
  type Expression,
  everyVariant,
  maximum,
  minimum,
  mul,
  neg,
  Optimizer,
  ruleByVariant,
  sqrt,
  type VariantOf,
} from "@opt/core";

export interface ADOPTOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the running averages of the normalized gradient and of the gradient's square, in [0, 1). Default [0.9, 0.9999]. */
  betas: readonly [number, number];
  /** Least divisor of the gradient, >= 0. Default 1e-6. */
  eps: number;
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Limits the normalized gradient of step t to (t - 1)^(1/4). Default true. */
  clipping: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const choices = {
  /** Decoupled weight decay. */
  decay: [false, true],
  clipping: [false, true],
} as const;

/** What makes one variant of the rule different from another. */
export type ADOPTVariant = VariantOf<typeof choices>;

/** The rule of a variant; the same object for the same variant. */
export const adoptRule = /* @__PURE__ */ ruleByVariant(choices, ({ decay, clipping }) =>
  defineRule({
    name: `adopt${decay ? "Decoupled" : ""}${clipping ? "Clipped" : ""}`,
    buffers: ["param", "grad", "expAvg", "expAvgSq"],
    nonNegative: ["expAvgSq"],
    scalars: [
      ...["beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", "eps"],
      ...[...(clipping ? ["limit"] : []), ...(decay ? ["decay"] : []), "negLr"],
    ],
    update({ param, grad, expAvg, expAvgSq }, scalars) {
      const h = scalars as Record<string, Expression>;
      const ratio = div(grad, maximum(sqrt(expAvgSq), h.eps!));
      const normalized = clipping ? minimum(maximum(ratio, neg(h.limit!)), h.limit!) : ratio;
      const m = add(mul(h.oneMinusBeta1!, normalized), mul(h.beta1!, expAvg));
      return {
        param: add(param, mul(h.negLr!, decay ? add(m, mul(h.decay!, param)) : m)),
        expAvg: m,
        expAvgSq: add(mul(h.oneMinusBeta2!, mul(grad, grad)), mul(h.beta2!, expAvgSq)),
      };
    },
  }),
);

/** Every variant, for kernel builds and tests. */
export const adoptRules = /* @__PURE__ */ everyVariant(choices, adoptRule);

const DEFAULT_BETAS = [0.9, 0.9999] as const;

const adopt: Algorithm<ADOPTOptions> = {
  name: "ADOPT",
  isDecoupled: true,
  defaults: { lr: 1e-3, betas: DEFAULT_BETAS, eps: 1e-6, weightDecay: 0, clipping: true, maximize: false },
  validate({ betas, eps, weightDecay, clipping }) {
    checkBetas("ADOPT", betas, DEFAULT_BETAS);
    checkNotNegative("ADOPT", "eps", eps);
    checkNotNegative("ADOPT", "weightDecay", weightDecay);
    checkBoolean("ADOPT", "clipping", clipping);
  },
  rule: ({ weightDecay, clipping }) => adoptRule({ decay: weightDecay !== 0, clipping }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  /** The first step takes over the square alone: its averages have the weights 0 and 1. */
  scalars({ lr, betas, eps, weightDecay }, { step }, { less, neg, pow, sub, where }) {
    const isFirst = less(step, 2);
    const [beta1, beta2] = [where(isFirst, 1, betas[0]), where(isFirst, 0, betas[1])];
    return {
      beta1,
      oneMinusBeta1: sub(1, beta1),
      beta2,
      oneMinusBeta2: sub(1, beta2),
      eps,
      limit: pow(sub(step, 1), 0.25),
      decay: weightDecay,
      negLr: neg(lr),
    };
  },
};

/**
 * ADOPT: Adam that converges with any beta2. It divides each gradient by the average of the squares before it, and averages the quotients.
 *
 *     c = clamp(grad / max(sqrt(v), eps), -(t - 1)^(1/4), (t - 1)^(1/4))
 *     m = beta1 m + (1 - beta1) c          v = beta2 v + (1 - beta2) grad^2          p -= lr * (m + weightDecay * p)
 *
 * The first step sets v = grad^2 and leaves m at 0. The numbers are those of optax.contrib.adopt, which has no weight decay.
 * Source: Taniguchi et al., "ADOPT: Modified Adam Can Converge with Any beta2 with the Optimal Rate" (2024).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { ADOPT } from "@opt/adopt";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new ADOPT([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class ADOPT extends Optimizer<ADOPTOptions> {
  protected override define(): Algorithm<ADOPTOptions> {
    return adopt;
  }
}
