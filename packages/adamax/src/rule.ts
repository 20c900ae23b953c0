/** `@opt/adamax/rules`: Adamax's update of one element, in PyTorch's order of operations, in all variants. */
import { abs, add, defineRule, div, type Expression, fma, less, max, mul, type Rule, select, sub } from "@opt/core";

/** What makes one variant different from another. */
export interface AdamaxVariant {
  /** Weight decay, added to the gradient. */
  readonly decay: boolean;
  /** beta1 <= 0.5: PyTorch interpolates from the other end there. */
  readonly smallBeta1: boolean;
}

const rules: Rule[] = [];

/** The rule of a variant; the same object for the same variant. Scalars: `adamaxScalars`. */
export function adamaxRule(variant: AdamaxVariant): Rule {
  const { decay, smallBeta1 } = variant;
  const number = (decay ? 2 : 0) + (smallBeta1 ? 1 : 0);
  rules[number] ??= makeRule(variant);
  return rules[number];
}

function makeRule({ decay, smallBeta1 }: AdamaxVariant): Rule {
  return defineRule({
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
      // PyTorch's maximum is NaN where either is; `max` sees to its first operand only.
      const isNumber = less(Number.NEGATIVE_INFINITY, decayed);
      const u = select(isNumber, max(add(abs(g), h.eps!), decayed), decayed);
      return { param: add(param, div(mul(h.negStepSize!, m), u)), expAvg: m, expInf: u };
    },
  });
}

/** Every variant, for kernel builds and tests. */
export const adamaxRules: readonly Rule[] = /* @__PURE__ */ [false, true].flatMap((decay) =>
  [false, true].map((smallBeta1) => adamaxRule({ decay, smallBeta1 })),
);
