/** What tells recorded steps that a tensor is no longer where it was held. */
import { changes } from "../device/versions";
import { check, OptError } from "../errors/errors";
import { show } from "../errors/show";
import { showShape } from "../values/shape";
import { Tensor } from "./tensor";

/**
 * Says that another tensor has taken this one's place, in a model for example: replays of steps that were recorded with it are refused,
 * and steps of optimizers that have it, but not the parameter `by`, once it gets no gradients.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const held = { mask: ones([2]) };
 * const before = held.mask;
 * held.mask = zeros([2]);
 * markReplaced(before, held.mask);
 */
export function markReplaced(x: Tensor, by?: Tensor | null): void {
  for (const value of by ? [x, by] : [x])
    check(value instanceof Tensor, "BAD_ARGUMENT", "markReplaced", () => `needs a tensor, got ${show(value)}.`);
  x.replaced = (x.replaced ?? 0) + 1;
  x.successor = by ?? undefined;
  if (by?.requiresGrad) x.checkSteps = (groups) => checkSteps(x, groups);
  if (x.isWatched) changes.disposed++;
}

/** A step would leave `x` alone, and not see what is trained in its place. @throws OptError BAD_STATE */
function checkSteps(x: Tensor, groups: readonly { readonly params: readonly Tensor[] }[]): void {
  const seen = new Set<Tensor>();
  let last = x;
  for (; last.successor && !seen.has(last); last = last.successor) seen.add(last);
  if (x.grad !== null || seen.has(last) || groups.some(({ params }) => params.includes(last))) return;
  throw new OptError(
    "BAD_STATE",
    "step",
    `the optimizer must have the model's parameters, got one of shape ${showShape(x.shape)} that was replaced by model.to(...) or assigned anew.`,
    "Make the optimizer after model.to(...).",
  );
}
