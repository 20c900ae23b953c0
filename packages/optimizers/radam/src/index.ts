/** RAdam: options, the update of one element in PyTorch's order of operations, its numbers of a step, and the class. */
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
  less,
  mul,
  Optimizer,
  ruleByVariant,
  sqrt,
  sub,
  type VariantOf,
  where,
} from "@opt/core";

export interface RAdamOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
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
export type RAdamVariant = VariantOf<typeof choices>;

/** The rule of a variant; the same object for the same variant. */
export const radamRule = /* @__PURE__ */ ruleByVariant(choices, ({ decay, smallBeta1 }) =>
  defineRule({
    name: `radam${decay === "none" ? "" : decay === "l2" ? "L2" : "Decoupled"}${smallBeta1 ? "SmallBeta1" : ""}`,
    buffers: ["param", "grad", "expAvg", "expAvgSq"],
    nonNegative: ["expAvgSq", "biasCorrection1", "biasCorrection2Sqrt", "eps", "lr", "rectification"],
    scalars: [
      ...(decay === "none" ? [] : ["decay"]),
      ...["oneMinusBeta1", "beta2", "oneMinusBeta2", "biasCorrection1", "biasCorrection2Sqrt", "eps", "lr"],
      "rectification",
    ],
    update({ param, grad, expAvg, expAvgSq }, scalars) {
      const h = scalars as Record<string, Expression>;
      const g = decay === "l2" ? fma(h.decay!, param, grad) : grad;
      const p = decay === "decoupled" ? mul(param, h.decay!) : param;
      const m = smallBeta1
        ? fma(sub(h.oneMinusBeta1!, 1), sub(g, expAvg), g)
        : fma(h.oneMinusBeta1!, sub(g, expAvg), expAvg);
      const v = fma(mul(h.oneMinusBeta2!, g), g, mul(expAvgSq, h.beta2!));
      const plain = mul(div(m, h.biasCorrection1!), h.lr!);
      const adaptive = mul(div(1, add(sqrt(v), h.eps!)), h.biasCorrection2Sqrt!);
      const rectified = mul(mul(plain, adaptive), h.rectification!);
      return { param: sub(p, where(less(0, h.rectification!), rectified, plain)), expAvg: m, expAvgSq: v };
    },
  }),
);

/** Every variant, for kernel builds and tests. */
export const radamRules = /* @__PURE__ */ everyVariant(choices, radamRule);

/**
 * At step t: the rectification of the variance, sqrt((rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t)),
 * rho_t being the length of the average that v has come to; 0 while that is too short (5 or less) to divide by.
 */
function rectificationAt(step: number, beta2: number, arithmetic: Arithmetic): number {
  const { sub, mul, div, pow, sqrt, less, where } = arithmetic;
  const longest = sub(div(2, sub(1, beta2)), 1);
  const power = pow(beta2, step);
  const length = sub(longest, div(mul(2 * step, power), sub(1, power)));
  const isLong = less(5, length);
  const numerator = mul(mul(sub(length, 4), sub(length, 2)), longest);
  const ratio = div(numerator, mul(mul(sub(longest, 4), sub(longest, 2)), length));
  // Chosen before the root too: what is below 0 has a root that has no gradient.
  return where(isLong, sqrt(where(isLong, ratio, 1)), 0);
}

const radam: Algorithm<RAdamOptions> = {
  name: "RAdam",
  defaults: {
    lr: 1e-3,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0,
    decoupledWeightDecay: false,
    maximize: false,
  },
  validate(options) {
    for (const name of ["eps", "weightDecay"] as const) checkNotNegative("RAdam", name, options[name]);
    checkBetas("RAdam", options.betas);
    checkBoolean("RAdam", "decoupledWeightDecay", options.decoupledWeightDecay);
  },
  rule: ({ betas, weightDecay, decoupledWeightDecay }) =>
    radamRule({
      decay: weightDecay === 0 ? "none" : decoupledWeightDecay ? "decoupled" : "l2",
      smallBeta1: 1 - betas[0] >= 0.5,
    }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars({ lr, betas, eps, weightDecay, decoupledWeightDecay }, { step }, arithmetic) {
    const { sub, mul, pow, sqrt } = arithmetic;
    return {
      decay: decoupledWeightDecay ? sub(1, mul(lr, weightDecay)) : weightDecay,
      oneMinusBeta1: sub(1, betas[0]),
      beta2: betas[1],
      oneMinusBeta2: sub(1, betas[1]),
      biasCorrection1: sub(1, pow(betas[0], step)),
      biasCorrection2Sqrt: sqrt(sub(1, pow(betas[1], step))),
      eps,
      lr,
      rectification: rectificationAt(step, betas[1], arithmetic),
    };
  },
};

/**
 * RAdam: Adam that steps by momentum alone until its second moment has seen enough, and then rectifies its variance.
 *
 *     g = grad (+ weightDecay * p)          m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
 *     p -= lr * m / (1 - beta1^t) * (rho_t > 5 ? r_t * sqrt(1 - beta2^t) / (sqrt(v) + eps) : 1)
 *     rho_t = rho_inf - 2 t beta2^t / (1 - beta2^t)          rho_inf = 2 / (1 - beta2) - 1
 *     r_t = sqrt((rho_t - 4) (rho_t - 2) rho_inf / ((rho_inf - 4) (rho_inf - 2) rho_t))
 *
 * The numbers are those of torch.optim.RAdam (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond" (2020).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { RAdam } from "@opt/radam";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new RAdam([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class RAdam extends Optimizer<RAdamOptions> {
  protected override define(): Algorithm<RAdamOptions> {
    return radam;
  }
}
