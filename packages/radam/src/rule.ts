/** `@opt/radam/rules`: RAdam's update of one element, in PyTorch's order of operations, in all variants. */
import { add, defineRule, div, type Expression, fma, less, mul, type Rule, select, sqrt, sub } from "@opt/core";

/** What makes one variant different from another. */
export interface RAdamVariant {
  /** Weight decay: none, added to the gradient (l2) or taken off the parameter (decoupled). */
  readonly decay: "none" | "l2" | "decoupled";
  /** beta1 <= 0.5: PyTorch interpolates from the other end there. */
  readonly smallBeta1: boolean;
}

const rules: Rule[] = [];

/** The rule of a variant; the same object for the same variant. Scalars: `radamScalars`. */
export function radamRule(variant: RAdamVariant): Rule {
  const { decay, smallBeta1 } = variant;
  const number = (decay === "none" ? 0 : decay === "l2" ? 2 : 4) + (smallBeta1 ? 1 : 0);
  rules[number] ??= makeRule(variant);
  return rules[number];
}

function makeRule({ decay, smallBeta1 }: RAdamVariant): Rule {
  return defineRule({
    name: `radam${decay === "none" ? "" : decay === "l2" ? "L2" : "Decoupled"}${smallBeta1 ? "SmallBeta1" : ""}`,
    buffers: ["param", "grad", "expAvg", "expAvgSq"],
    nonNegative: ["expAvgSq"],
    scalars: [
      ...(decay === "none" ? [] : ["decay"]),
      "oneMinusBeta1",
      "beta2",
      "oneMinusBeta2",
      "biasCorrection1",
      "biasCorrection2Sqrt",
      "eps",
      "lr",
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
      return { param: sub(p, select(less(0, h.rectification!), rectified, plain)), expAvg: m, expAvgSq: v };
    },
  });
}

/** Every variant, for kernel builds and tests. */
export const radamRules: readonly Rule[] = /* @__PURE__ */ (["none", "l2", "decoupled"] as const).flatMap((decay) =>
  [false, true].map((smallBeta1) => radamRule({ decay, smallBeta1 })),
);
