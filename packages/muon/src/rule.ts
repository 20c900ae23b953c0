/** `@opt/muon/rules`: Muon's updates of one element, before and after the matrix products, in PyTorch's order of operations. */
import { abs, defineRule, type Expression, fma, less, mul, type Rule, select, sub } from "@opt/core";

const BUFFERS = ["param", "grad", "momentumBuffer", "direction"] as const;

/** start + weight (end - start), from the nearer end, as PyTorch's lerp. */
function lerp(start: Expression, end: Expression, weight: Expression): Expression {
  const isNearStart = less(abs(weight), 0.5);
  const factor = select(isNearStart, weight, sub(weight, 1));
  return fma(factor, sub(end, start), select(isNearStart, start, end));
}

/** What is orthogonalized. Scalars: `muonScalars`. */
export const muonDirectionRules = {
  plain: /* @__PURE__ */ defineRule({
    name: "muonDirection",
    buffers: BUFFERS,
    scalars: ["weight"],
    update: ({ grad, momentumBuffer }, { weight }) => ({ direction: lerp(momentumBuffer, grad, weight) }),
  }),
  nesterov: /* @__PURE__ */ defineRule({
    name: "muonDirectionNesterov",
    buffers: BUFFERS,
    scalars: ["weight", "momentum"],
    update: ({ grad, momentumBuffer }, { weight, momentum }) => ({
      direction: lerp(grad, lerp(momentumBuffer, grad, weight), momentum),
    }),
  }),
} as const;

/** The step along a direction that is orthogonal. */
export const muonRule = /* @__PURE__ */ defineRule({
  name: "muon",
  buffers: BUFFERS,
  scalars: ["weight", "keep", "negLr"],
  update: ({ param, grad, momentumBuffer, direction }, { weight, keep, negLr }) => ({
    param: fma(negLr, direction, mul(param, keep)),
    momentumBuffer: lerp(momentumBuffer, grad, weight),
  }),
});

/** Every rule, for kernel builds and tests. */
export const muonRules: readonly Rule[] = [muonDirectionRules.plain, muonDirectionRules.nesterov, muonRule];
