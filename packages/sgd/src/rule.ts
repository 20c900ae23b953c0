/** `@opt/sgd/rules`: SGD's update of one element, in PyTorch's order of operations, in all variants. */
import { defineRule, type Expression, fma, less, mul, type Rule, select } from "@opt/core";

/** What makes one variant different from another. */
export interface SGDVariant {
  readonly momentum: "none" | "plain" | "nesterov";
  /** Weight decay, added to the gradient. */
  readonly decay: boolean;
}

const rules: Rule[] = [];

/** The rule of a variant; the same object for the same variant. Scalars: `sgdScalars`. */
export function sgdRule(variant: SGDVariant): Rule {
  const { momentum, decay } = variant;
  const number = (momentum === "none" ? 0 : momentum === "plain" ? 2 : 4) + (decay ? 1 : 0);
  rules[number] ??= makeRule(variant);
  return rules[number];
}

function makeRule({ momentum, decay }: SGDVariant): Rule {
  const kind = momentum === "none" ? "" : momentum === "plain" ? "Momentum" : "Nesterov";
  return defineRule({
    name: `sgd${kind}${decay ? "L2" : ""}`,
    buffers: ["param", "grad", ...(momentum === "none" ? [] : ["momentumBuffer"])],
    scalars: [
      ...(decay ? ["decay"] : []),
      ...(momentum === "none" ? [] : ["momentum", "oneMinusDampening", "isFirst"]),
      "negLr",
    ],
    update(buffers, scalars) {
      const { param, grad, momentumBuffer } = buffers as Record<string, Expression> &
        Record<"param" | "grad", Expression>;
      const h = scalars as Record<string, Expression>;
      const g = decay ? fma(h.decay!, param, grad) : grad;
      if (momentum === "none") return { param: fma(h.negLr!, g, param) };
      // The first momentum is the gradient itself, whatever the dampening.
      const later = fma(h.oneMinusDampening!, g, mul(momentumBuffer!, h.momentum!));
      const m = select(less(0, h.isFirst!), g, later);
      const direction = momentum === "nesterov" ? fma(h.momentum!, m, g) : m;
      return { param: fma(h.negLr!, direction, param), momentumBuffer: m };
    },
  });
}

/** Every variant, for kernel builds and tests. */
export const sgdRules: readonly Rule[] = /* @__PURE__ */ (["none", "plain", "nesterov"] as const).flatMap((momentum) =>
  [false, true].map((decay) => sgdRule({ momentum, decay })),
);
