/** `@opt/adam-amsgrad/rules`: Adam's update of one element, in PyTorch's order of operations, in all variants. */
import { add, defineRule, div, type Expression, fma, max, mul, type Rule, sqrt, sub } from "@opt/core";

/** What makes one variant different from another. */
export interface AdamVariant {
  readonly amsgrad: boolean;
  /** Weight decay: none, added to the gradient (l2) or taken off the parameter (decoupled). */
  readonly decay: "none" | "l2" | "decoupled";
  /** beta1 <= 0.5: PyTorch interpolates from the other end there. */
  readonly smallBeta1: boolean;
}

const rules: Rule[] = [];

/** The rule of a variant; the same object for the same variant. Scalars: `adamScalars`. */
export function adamRule(variant: AdamVariant): Rule {
  const { amsgrad, decay, smallBeta1 } = variant;
  const number = (decay === "none" ? 0 : decay === "l2" ? 4 : 8) + (amsgrad ? 2 : 0) + (smallBeta1 ? 1 : 0);
  rules[number] ??= makeRule(variant);
  return rules[number];
}

function makeRule({ amsgrad, decay, smallBeta1 }: AdamVariant): Rule {
  const suffix = `${amsgrad ? "Amsgrad" : ""}${smallBeta1 ? "SmallBeta1" : ""}`;
  return defineRule({
    name: `${decay === "decoupled" ? "adamw" : decay === "l2" ? "adamL2" : "adam"}${suffix}`,
    buffers: ["param", "grad", "expAvg", "expAvgSq", ...(amsgrad ? ["maxExpAvgSq"] : [])],
    nonNegative: ["expAvgSq", ...(amsgrad ? ["maxExpAvgSq"] : [])],
    scalars: [
      ...(decay === "none" ? [] : ["decay"]),
      "oneMinusBeta1",
      "beta2",
      "oneMinusBeta2",
      "negStepSize",
      "biasCorrection2Sqrt",
      "eps",
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
      const largest = amsgrad ? max(v, maxExpAvgSq!) : v;
      const denom = add(div(sqrt(largest), h.biasCorrection2Sqrt!), h.eps!);
      return {
        param: add(p, div(mul(h.negStepSize!, m), denom)),
        expAvg: m,
        expAvgSq: v,
        ...(amsgrad ? { maxExpAvgSq: largest } : {}),
      };
    },
  });
}

/** Every variant, for kernel builds and tests. */
export const adamRules: readonly Rule[] = /* @__PURE__ */ (["none", "l2", "decoupled"] as const).flatMap((decay) =>
  [false, true].flatMap((amsgrad) => [false, true].map((smallBeta1) => adamRule({ amsgrad, decay, smallBeta1 }))),
);
