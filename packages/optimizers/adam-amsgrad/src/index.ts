/** Adam, AdamW and AMSGrad; SparseAdam is in its own file. Options, the update of one element in PyTorch's order of operations, its numbers of a step, and the classes. */
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
  fma,
  maximum,
  modifiedRules,
  mul,
  Optimizer,
  ruleByVariant,
  sqrt,
  sub,
  type VariantOf,
} from "@opt/core";

export { SparseAdam, type SparseAdamOptions, sparseAdamRules } from "./sparse-adam";

export interface AdamOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Weight decay, >= 0. Default 0 (AdamW: 1e-2). */
  weightDecay: number;
  /** Divide by the largest running average so far instead of the present one. Default false. */
  amsgrad: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
  /** Take the decay off the parameter instead of adding it to the gradient: AdamW. Default false (AdamW: always true). */
  decoupledWeightDecay: boolean;
}

const choices = {
  /** Weight decay: none, added to the gradient (l2) or taken off the parameter (decoupled). */
  decay: ["none", "l2", "decoupled"],
  amsgrad: [false, true],
  /** beta1 <= 0.5: PyTorch interpolates from the other end there. */
  smallBeta1: [false, true],
} as const;

/** What makes one variant of the rule different from another. */
export type AdamVariant = VariantOf<typeof choices>;

/** The rule of a variant; the same object for the same variant. */
export const adamRule = /* @__PURE__ */ ruleByVariant(choices, ({ amsgrad, decay, smallBeta1 }) => {
  const suffix = `${amsgrad ? "Amsgrad" : ""}${smallBeta1 ? "SmallBeta1" : ""}`;
  return defineRule({
    name: `${decay === "decoupled" ? "adamw" : decay === "l2" ? "adamL2" : "adam"}${suffix}`,
    buffers: ["param", "grad", "expAvg", "expAvgSq", ...(amsgrad ? ["maxExpAvgSq"] : [])],
    nonNegative: ["expAvgSq", ...(amsgrad ? ["maxExpAvgSq"] : []), "biasCorrection2Sqrt", "eps"],
    scalars: [
      ...(decay === "none" ? [] : ["decay"]),
      ...["oneMinusBeta1", "beta2", "oneMinusBeta2", "negStepSize", "biasCorrection2Sqrt", "eps"],
    ],
    update(buffers, scalars) {
      const { param, grad, expAvg, expAvgSq, maxExpAvgSq } = buffers as Record<string, Expression> &
        Record<"param" | "grad" | "expAvg" | "expAvgSq", Expression>;
      const h = scalars as Record<string, Expression>;
      const g = decay === "l2" ? fma(h.decay!, param, grad) : grad;
      const p = decay === "decoupled" ? mul(param, h.decay!) : param;
      const m = smallBeta1
        ? fma(sub(h.oneMinusBeta1!, 1), sub(g, expAvg), g)
        : fma(h.oneMinusBeta1!, sub(g, expAvg), expAvg);
      const v = fma(mul(h.oneMinusBeta2!, g), g, mul(expAvgSq, h.beta2!));
      const largest = amsgrad ? maximum(v, maxExpAvgSq!) : v;
      const denom = add(div(sqrt(largest), h.biasCorrection2Sqrt!), h.eps!);
      return {
        param: add(p, div(mul(h.negStepSize!, m), denom)),
        expAvg: m,
        expAvgSq: v,
        ...(amsgrad ? { maxExpAvgSq: largest } : {}),
      };
    },
  });
});

/** Every variant, for kernel builds and tests. */
export const adamRules = /* @__PURE__ */ everyVariant(choices, adamRule);

/** Adam's and AdamW's rules with modifications, for kernel builds and tests. */
export const modifiedAdamRules = /* @__PURE__ */ modifiedRules(
  /* @__PURE__ */ adamRule({ decay: "none", amsgrad: false, smallBeta1: false }),
);

function algorithm(name: string, defaults: Partial<AdamOptions>, fixed?: Partial<AdamOptions>): Algorithm<AdamOptions> {
  return {
    name,
    defaults: {
      lr: 1e-3,
      betas: [0.9, 0.999],
      eps: 1e-8,
      weightDecay: 0,
      amsgrad: false,
      maximize: false,
      decoupledWeightDecay: false,
      ...defaults,
    },
    fixed,
    validate(options) {
      for (const option of ["eps", "weightDecay"] as const) checkNotNegative(name, option, options[option]);
      checkBetas(name, options.betas);
      for (const option of ["amsgrad", "decoupledWeightDecay"] as const) checkBoolean(name, option, options[option]);
    },
    rule: ({ betas, weightDecay, decoupledWeightDecay, amsgrad }) =>
      adamRule({
        amsgrad,
        decay: weightDecay === 0 ? "none" : decoupledWeightDecay ? "decoupled" : "l2",
        smallBeta1: 1 - betas[0] >= 0.5,
      }),
    initialCounters: { step: 0 },
    advance: ({ step }) => ({ step: step + 1 }),
    /** The step size is -lr / (1 - beta1^t). sqrt(v) is corrected by sqrt(1 - beta2^t). */
    scalars({ lr, betas, eps, weightDecay, decoupledWeightDecay }, { step }, { sub, mul, div, neg, pow, sqrt }) {
      return {
        decay: decoupledWeightDecay ? sub(1, mul(lr, weightDecay)) : weightDecay,
        oneMinusBeta1: sub(1, betas[0]),
        beta2: betas[1],
        oneMinusBeta2: sub(1, betas[1]),
        negStepSize: neg(div(lr, sub(1, pow(betas[0], step)))),
        biasCorrection2Sqrt: sqrt(sub(1, pow(betas[1], step))),
        eps,
      };
    },
  };
}

const adam = /* @__PURE__ */ algorithm("Adam", {});
const adamw = /* @__PURE__ */ algorithm(
  "AdamW",
  { weightDecay: 1e-2, decoupledWeightDecay: true },
  { decoupledWeightDecay: true },
);

/**
 * Adam, with AMSGrad by the option `amsgrad`.
 *
 *     g = grad (+ weightDecay * p)          m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
 *     p -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps)          amsgrad: the largest v so far instead of v
 *
 * The numbers are those of torch.optim.Adam (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * Sources: Kingma & Ba (2015); Reddi, Kale & Kumar, "On the Convergence of Adam and Beyond" (2018).
 * optax takes the maximum after the bias correction, Keras adds eps to the uncorrected sqrt(v).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Adam } from "@opt/adam-amsgrad";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Adam([w], { amsgrad: true });
 * w.mul(w).sum().backward();
 * optimizer.step();
 */
export class Adam extends Optimizer<AdamOptions> {
  protected override define(): Algorithm<AdamOptions> {
    return adam;
  }
}

/**
 * AdamW: Adam with decoupled weight decay, p *= 1 - lr * weightDecay before the update.
 * Source: Loshchilov & Hutter, "Decoupled Weight Decay Regularization" (2019), as torch.optim.AdamW.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * const optimizer = new AdamW(model.namedParameters(), { lr: 3e-4, weightDecay: 0.1 });
 */
export class AdamW extends Optimizer<AdamOptions> {
  protected override define(): Algorithm<AdamOptions> {
    return adamw;
  }
}
