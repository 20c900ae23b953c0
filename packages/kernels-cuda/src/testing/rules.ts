/** Rules that no optimizer uses, for tests of the kernels themselves. */
import {
  abs,
  add,
  defineRule,
  div,
  fma,
  less,
  maximum,
  minimum,
  mul,
  neg,
  type Rule,
  sqrt,
  sub,
  where,
} from "@opt/core";

/** Every op, compiled ahead. */
export const everyOp: Rule = defineRule({
  name: "everyOp",
  buffers: ["param", "grad", "memory"],
  scalars: ["rate", "limit"],
  update({ param, grad, memory }, { rate, limit }) {
    const clipped = minimum(maximum(grad, neg(limit)), limit);
    const root = sqrt(abs(fma(clipped, grad, memory)));
    const scaled = div(mul(rate, clipped), add(root, 0.1));
    return { param: where(less(root, limit), sub(param, scaled), param), memory: maximum(root, memory) };
  },
});

/** In no build: NVRTC compiles it, or it is refused. */
export const unbuilt: Rule = defineRule({
  name: "unbuilt",
  buffers: ["left", "right"],
  scalars: ["scale"],
  update: ({ left, right }, { scale }) => ({ left: mul(right, scale), right: add(left, 1) }),
});
