/** `@opt/nadam/rules`: NAdam's update of one element, in PyTorch's order of operations, in all variants. */
import { add, defineRule, div, type Expression, fma, mul, type Rule, sqrt, sub } from "@opt/core";

/** What makes one variant different from another. */
export interface NAdamVariant {
  /** Weight decay: none, added to the gradient (l2) or taken off the parameter (decoupled). */
  readonly decay: "none" | "l2" | "decoupled";
  /** beta1 <= 0.5: PyTorch interpolates from the other end there. */
  readonly smallBeta1: boolean;
}

const rules: Rule[] = [];

/** The rule of a variant; the same object for the same variant. Scalars: `nadamScalars`. */
export function nadamRule(variant: NAdamVariant): Rule {
  const { decay, smallBeta1 } = variant;
  const number = (decay === "none" ? 0 : decay === "l2" ? 2 : 4) + (smallBeta1 ? 1 : 0);
  rules[number] ??= makeRule(variant);
  return rules[number];
}

function makeRule({ decay, smallBeta1 }: NAdamVariant): Rule {
  return defineRule({
    name: `nadam${decay === "none" ? "" : decay === "l2" ? "L2" : "Decoupled"}${smallBeta1 ? "SmallBeta1" : ""}`,
    buffers: ["param", "grad", "expAvg", "expAvgSq"],
    nonNegative: ["expAvgSq"],
    scalars: [
      ...(decay === "none" ? [] : ["decay"]),
      "oneMinusBeta1",
      "beta2",
      "oneMinusBeta2",
      "biasCorrection2",
      "eps",
      "negGradStep",
      "negMomentumStep",
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
  });
}

/** Every variant, for kernel builds and tests. */
export const nadamRules: readonly Rule[] = /* @__PURE__ */ (["none", "l2", "decoupled"] as const).flatMap((decay) =>
  [false, true].map((smallBeta1) => nadamRule({ decay, smallBeta1 })),
);
