/** Adamax: options, the update of one element in PyTorch's order of operations, its numbers of a step, and the class. */
import {
  type Algorithm,
  abs,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  defineRule,
  div,
  type Expression,
  everyVariant,
  fma,
  less,
  maximum,
  mul,
  Optimizer,
  ruleByVariant,
  sub,
  type VariantOf,
  where,
} from "@opt/core";

export interface AdamaxOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 2e-3. */
  lr: number;
  /** Decay rates of the running average of the gradient and of its largest magnitude, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the gradient's magnitude, >= 0. Default 1e-8. */
  eps: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const choices = {
  /** Weight decay, added to the gradient. */
  decay: [false, true],
  /** beta1 <= 0.5: PyTorch interpolates from the other end there. */
  smallBeta1: [false, true],
} as const;

/** What makes one variant of the rule different from another. */
export type AdamaxVariant = VariantOf<typeof choices>;

/** The rule of a variant; the same object for the same variant. */
export const adamaxRule = /* @__PURE__ */ ruleByVariant(choices, ({ decay, smallBeta1 }) =>
  defineRule({
    name: `adamax${decay ? "L2" : ""}${smallBeta1 ? "SmallBeta1" : ""}`,
    buffers: ["param", "grad", "expAvg", "expInf"],
    nonNegative: ["expInf"],
    scalars: [...(decay ? ["decay"] : []), "oneMinusBeta1", "beta2", "eps", "negStepSize"],
    update({ param, grad, expAvg, expInf }, scalars) {
      const h = scalars as Record<string, Expression>;
      const g = decay ? fma(h.decay!, param, grad) : grad;
      const m = smallBeta1
        ? fma(sub(h.oneMinusBeta1!, 1), sub(g, expAvg), g)
        : fma(h.oneMinusBeta1!, sub(g, expAvg), expAvg);
      const decayed = mul(expInf, h.beta2!);
      // PyTorch's maximum is NaN if either operand is. `max` passes on NaN of its first operand alone.
      const isNumber = less(Number.NEGATIVE_INFINITY, decayed);
      const u = where(isNumber, maximum(add(abs(g), h.eps!), decayed), decayed);
      return { param: add(param, div(mul(h.negStepSize!, m), u)), expAvg: m, expInf: u };
    },
  }),
);

/** Every variant, for kernel builds and tests. */
export const adamaxRules = /* @__PURE__ */ everyVariant(choices, adamaxRule);

const adamax: Algorithm<AdamaxOptions> = {
  name: "Adamax",
  defaults: { lr: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, maximize: false },
  validate(options) {
    for (const name of ["eps", "weightDecay"] as const) checkNotNegative("Adamax", name, options[name]);
    checkBetas("Adamax", options.betas);
  },
  rule: ({ betas, weightDecay }) => adamaxRule({ decay: weightDecay !== 0, smallBeta1: 1 - betas[0] >= 0.5 }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  /** The step size is -lr / (1 - beta1^t). */
  scalars: ({ lr, betas, eps, weightDecay }, { step }, { sub, div, neg, pow }) => ({
    decay: weightDecay,
    oneMinusBeta1: sub(1, betas[0]),
    beta2: betas[1],
    eps,
    negStepSize: neg(div(lr, sub(1, pow(betas[0], step)))),
  }),
};

/**
 * Adamax: Adam with the largest decayed magnitude of the gradient in place of its root mean square.
 *
 *     g = grad (+ weightDecay * p)          m = beta1 m + (1 - beta1) g          u = max(beta2 u, |g| + eps)
 *     p -= lr / (1 - beta1^t) * m / u
 *
 * The numbers are those of torch.optim.Adamax (PyTorch 2.13), bit for bit in float32.
 * Source: Kingma & Ba, "Adam: A Method for Stochastic Optimization" (2015), section 7.1. Paddle and Keras add eps elsewhere.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Adamax } from "@opt/adamax";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Adamax([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Adamax extends Optimizer<AdamaxOptions> {
  protected override define(): Algorithm<AdamaxOptions> {
    return adamax;
  }
}
