/** `@opt/rmsprop/rules`: RMSprop's update of one element, in PyTorch's order of operations, in all variants. */
import { add, defineRule, div, type Expression, fma, mul, neg, type Rule, sqrt, sub } from "@opt/core";

/** What makes one variant different from another. */
export interface RMSpropVariant {
  readonly momentum: boolean;
  /** smallAlpha: alpha <= 0.5, where PyTorch interpolates from the other end. */
  readonly centered: "no" | "yes" | "smallAlpha";
  /** Weight decay, added to the gradient. */
  readonly decay: boolean;
}

const rules: Rule[] = [];

/** The rule of a variant; the same object for the same variant. Scalars: `rmspropScalars`. */
export function rmspropRule(variant: RMSpropVariant): Rule {
  const { momentum, centered, decay } = variant;
  const number = (centered === "no" ? 0 : centered === "yes" ? 4 : 8) + (momentum ? 2 : 0) + (decay ? 1 : 0);
  rules[number] ??= makeRule(variant);
  return rules[number];
}

function makeRule({ momentum, centered, decay }: RMSpropVariant): Rule {
  const kind = centered === "no" ? "" : centered === "yes" ? "Centered" : "CenteredSmallAlpha";
  return defineRule({
    name: `rmsprop${kind}${momentum ? "Momentum" : ""}${decay ? "L2" : ""}`,
    buffers: [
      "param",
      "grad",
      "squareAvg",
      ...(momentum ? ["momentumBuffer"] : []),
      ...(centered === "no" ? [] : ["gradAvg"]),
    ],
    nonNegative: ["squareAvg"],
    scalars: [...(decay ? ["decay"] : []), "alpha", "oneMinusAlpha", "eps", ...(momentum ? ["momentum"] : []), "negLr"],
    update(buffers, scalars) {
      const { param, grad, squareAvg, momentumBuffer, gradAvg } = buffers as Record<string, Expression> &
        Record<"param" | "grad" | "squareAvg", Expression>;
      const h = scalars as Record<string, Expression>;
      const g = decay ? fma(h.decay!, param, grad) : grad;
      const square = fma(mul(h.oneMinusAlpha!, g), g, mul(squareAvg, h.alpha!));
      const mean =
        centered === "no"
          ? undefined
          : centered === "yes"
            ? fma(h.oneMinusAlpha!, sub(g, gradAvg!), gradAvg!)
            : fma(sub(h.oneMinusAlpha!, 1), sub(g, gradAvg!), g);
      const variance = mean === undefined ? square : fma(neg(mean), mean, square);
      const denom = add(sqrt(variance), h.eps!);
      const state = { squareAvg: square, ...(mean === undefined ? {} : { gradAvg: mean }) };
      if (!momentum) return { param: add(param, div(mul(h.negLr!, g), denom)), ...state };
      const m = add(mul(momentumBuffer!, h.momentum!), div(g, denom));
      return { param: fma(h.negLr!, m, param), momentumBuffer: m, ...state };
    },
  });
}

/** Every variant, for kernel builds and tests. */
export const rmspropRules: readonly Rule[] = /* @__PURE__ */ (["no", "yes", "smallAlpha"] as const).flatMap(
  (centered) =>
    [false, true].flatMap((momentum) => [false, true].map((decay) => rmspropRule({ centered, momentum, decay }))),
);
