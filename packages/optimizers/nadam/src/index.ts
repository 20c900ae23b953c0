/** NAdam: options, the update of one element in PyTorch's order of operations, its numbers of a step, and the class. */
import {
  type Algorithm,
  type Arithmetic,
  add,
  type BaseOptions,
  checkBetas,
  checkBoolean,
  checkNotNegative,
  defineRule,
  div,
  type Expression,
  everyVariant,
  fma,
  modifiedRules,
  mul,
  Optimizer,
  ruleByVariant,
  sqrt,
  sub,
  type VariantOf,
} from "@opt/core";

export interface NAdamOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 2e-3. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** psi in mu_t = beta1 (1 - 0.5 * 0.96^(t psi)), >= 0. Default 4e-3. */
  momentumDecay: number;
  /** Take the decay off the parameter (as AdamW does) instead of adding it to the gradient. Default false. */
  decoupledWeightDecay: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const choices = {
  /** Weight decay: none, added to the gradient (l2) or taken off the parameter (decoupled). */
  decay: ["none", "l2", "decoupled"],
  /** beta1 <= 0.5: PyTorch interpolates from the other end there. */
  smallBeta1: [false, true],
} as const;

/** What makes one variant of the rule different from another. */
export type NAdamVariant = VariantOf<typeof choices>;

/** The rule of a variant; the same object for the same variant. */
export const nadamRule = /* @__PURE__ */ ruleByVariant(choices, ({ decay, smallBeta1 }) =>
  defineRule({
    name: `nadam${decay === "none" ? "" : decay === "l2" ? "L2" : "Decoupled"}${smallBeta1 ? "SmallBeta1" : ""}`,
    buffers: ["param", "grad", "expAvg", "expAvgSq"],
    nonNegative: ["expAvgSq"],
    scalars: [
      ...(decay === "none" ? [] : ["decay"]),
      ...["oneMinusBeta1", "beta2", "oneMinusBeta2", "biasCorrection2", "eps", "negGradStep", "negMomentumStep"],
    ],
    update({ param, grad, expAvg, expAvgSq }, scalars) {
      const h = scalars as Record<string, Expression>;
      const g = decay === "l2" ? fma(h.decay!, param, grad) : grad;
      const p = decay === "decoupled" ? mul(param, h.decay!) : param;
      const m = smallBeta1
        ? fma(sub(h.oneMinusBeta1!, 1), sub(g, expAvg), g)
        : fma(h.oneMinusBeta1!, sub(g, expAvg), expAvg);
      const v = fma(mul(h.oneMinusBeta2!, g), g, mul(expAvgSq, h.beta2!));
      const denom = add(sqrt(div(v, h.biasCorrection2!)), h.eps!);
      const afterGrad = add(p, div(mul(h.negGradStep!, g), denom));
      return { param: add(afterGrad, div(mul(h.negMomentumStep!, m), denom)), expAvg: m, expAvgSq: v };
    },
  }),
);

/** Every variant, for kernel builds and tests. */
export const nadamRules = /* @__PURE__ */ everyVariant(choices, nadamRule);

/** NAdam's rules with modifications, for kernel builds and tests. */
export const modifiedNAdamRules = /* @__PURE__ */ modifiedRules(
  /* @__PURE__ */ nadamRule({ decay: "none", smallBeta1: false }),
);

/** mu_t = beta1 (1 - 0.5 * 0.96^(t * momentumDecay)) (Dozat 2016, section 2). */
function momentumAt(step: number, { betas, momentumDecay }: NAdamOptions, { sub, mul, pow }: Arithmetic): number {
  return mul(betas[0], sub(1, mul(0.5, pow(0.96, mul(step, momentumDecay)))));
}

const nadam: Algorithm<NAdamOptions> = {
  name: "NAdam",
  defaults: {
    lr: 2e-3,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0,
    momentumDecay: 4e-3,
    decoupledWeightDecay: false,
    maximize: false,
  },
  validate(options) {
    for (const name of ["eps", "weightDecay", "momentumDecay"] as const) checkNotNegative("NAdam", name, options[name]);
    checkBetas("NAdam", options.betas);
    checkBoolean("NAdam", "decoupledWeightDecay", options.decoupledWeightDecay);
  },
  rule: ({ betas, weightDecay, decoupledWeightDecay }) =>
    nadamRule({
      decay: weightDecay === 0 ? "none" : decoupledWeightDecay ? "decoupled" : "l2",
      smallBeta1: 1 - betas[0] >= 0.5,
    }),
  initialCounters: { step: 0, mu_product: 1 },
  /** PyTorch keeps the product of the mu_t in float32. A loaded one becomes float32 here. */
  advance({ step, mu_product }, options, arithmetic) {
    const { mul, fround } = arithmetic;
    const mu = momentumAt(step + 1, options, arithmetic);
    return { step: step + 1, mu_product: fround(mul(fround(mu_product!), fround(mu))) };
  },
  /** The steps along the gradient, -lr (1 - mu_t) / (1 - mu_product), and along the momentum, -lr mu_{t+1} / (1 - mu_product mu_{t+1}). */
  scalars(options, { step, mu_product }, arithmetic) {
    const { lr, betas, eps, weightDecay, decoupledWeightDecay } = options;
    const { sub, mul, div, neg, pow } = arithmetic;
    const mu = momentumAt(step, options, arithmetic);
    const muNext = momentumAt(step + 1, options, arithmetic);
    return {
      decay: decoupledWeightDecay ? sub(1, mul(lr, weightDecay)) : weightDecay,
      oneMinusBeta1: sub(1, betas[0]),
      beta2: betas[1],
      oneMinusBeta2: sub(1, betas[1]),
      biasCorrection2: sub(1, pow(betas[1], step)),
      eps,
      negGradStep: div(mul(neg(lr), sub(1, mu)), sub(1, mu_product!)),
      negMomentumStep: div(mul(neg(lr), muNext), sub(1, mul(mu_product!, muNext))),
    };
  },
};

/**
 * NAdam: Adam with Nesterov momentum.
 *
 *     g = grad (+ weightDecay * p)          m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
 *     p -= lr * ((1 - mu_t) g / (1 - prod mu) + mu_{t+1} m / (1 - prod mu * mu_{t+1})) / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * The numbers are those of torch.optim.NAdam (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * Source: Dozat, "Incorporating Nesterov Momentum into Adam" (2016). Paddle's differs in the iterated decay product, Keras' in psi = 1.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { NAdam } from "@opt/nadam";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new NAdam([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class NAdam extends Optimizer<NAdamOptions> {
  protected override define(): Algorithm<NAdamOptions> {
    return nadam;
  }
}
