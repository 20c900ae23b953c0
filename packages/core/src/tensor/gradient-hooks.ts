/** Hooks that run when a leaf's gradient is complete, while backward still computes others. */

import { inEachRun } from "../device/host-code";
import { propertyWritten } from "../device/observed";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { Tensor } from "./tensor";

/**
 * Calls `hook` in each backward that reaches the leaf, as soon as nothing more is added to its `grad` there: PyTorch's
 * `register_post_accumulate_grad_hook`. `grad(...)` calls none.
 *
 * @returns the remover
 * @throws OptError BAD_ARGUMENT unless it is a leaf that requires a gradient, and a function.
 * @example
 * const weight = parameter([1, 2]);
 * const remove = onGradient(weight, (leaf) => console.log(leaf.grad.shape)); // [2]
 * weight.pow(2).sum().backward();
 * remove();
 */
export function onGradient(leaf: Tensor, hook: (leaf: Tensor) => void): () => void {
  const where = "onGradient";
  const isLeaf = leaf instanceof Tensor && leaf.requiresGrad && leaf.node === null;
  check(isLeaf, "BAD_ARGUMENT", where, () => `needs a leaf that requires a gradient, got ${show(leaf)}.`);
  checkValue(typeof hook === "function", where, "the hook", "a function", hook);
  const call = () => inEachRun([], () => hook(leaf));
  // Another set each time, by which compiled functions know that their trace is out of date.
  leaf.gradientHooks = new Set([...(leaf.gradientHooks ?? []), call]);
  propertyWritten();
  return () => {
    propertyWritten();
    const others = new Set([...(leaf.gradientHooks ?? [])].filter((other) => other !== call));
    if (others.size > 0) leaf.gradientHooks = others;
    else delete leaf.gradientHooks;
  };
}
