/** The rules that native kernels are built for ahead: those of the workspace, and of tests of the kernels. */
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
import { movesRule } from "@opt/core/backend";
import { workspaceRules } from "./workspace-rules";

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

/** Roots divided by a scalar, compiled ahead. */
export const dividedRoots: Rule = defineRule({
  name: "dividedRoots",
  buffers: ["quotient", "x"],
  scalars: ["divisor"],
  update: ({ x }, { divisor }) => ({ quotient: div(sqrt(x), divisor) }),
});

/** In no build: it is interpreted, or compiled at run time. */
export const unbuilt: Rule = defineRule({
  name: "unbuilt",
  buffers: ["left", "right"],
  scalars: ["scale"],
  update: ({ left, right }, { scale }) => ({ left: mul(right, scale), right: add(left, 1) }),
});

/** Every variant of every algorithm package of the workspace, and those that tests use. */
export const builtRules: readonly Rule[] = [...(await workspaceRules()), everyOp, dividedRoots];

/** What `cautious` needs to know of the rules that update a parameter, for devices whose kernels are all compiled ahead. */
export const builtMoves: readonly Rule[] = builtRules
  .filter(
    ({ buffers, writes, modified }) => `${buffers}`.startsWith("param,grad") && writes.includes("param") && !modified,
  )
  .flatMap((rule) => [movesRule(rule, false), movesRule(rule, true)]);
