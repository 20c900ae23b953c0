/** Parameters that a module has replaced by others: optimizers that still have them say so. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { showShape } from "../values/shape";
import { Tensor } from "./tensor";

/**
 * Says that another tensor has taken this one's place, in a model for example. Steps of optimizers that have it, but not the
 * parameter `by`, then throw BAD_STATE once it gets no gradients, unless what took its place is frozen.
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
  if (by?.isParameter) x.checkSteps = (groups) => checkSteps(x, groups);
}

/** True if a module has another one in its place, and that is not among these: what they do would leave the model as it is. */
export function isReplaced(x: Tensor, among: readonly Tensor[]): boolean {
  return replacementOf(x, among) !== undefined;
}

/** What a module has in its place, unless that is among these. */
function replacementOf(x: Tensor, among: readonly Tensor[]): Tensor | undefined {
  if (x.successor === undefined) return undefined; // asked of every parameter at each update of averages
  const seen = new Set<Tensor>();
  let last = x;
  for (; last.successor && !seen.has(last); last = last.successor) seen.add(last);
  return seen.has(last) || among.includes(last) ? undefined : last;
}

/** The words for it. */
export function replacedBy({ shape }: Tensor): string {
  return `parameters must be the model's, got one of shape ${showShape(shape)} that was replaced by model.to(...) or assigned.`;
}

/** @throws OptError BAD_STATE if `x` gets no gradients any more: what is frozen in its place would get none either */
function checkSteps(x: Tensor, groups: readonly { readonly params: readonly Tensor[] }[]): void {
  const among = groups.flatMap(({ params }) => params);
  const isLeft = x.grad === null && replacementOf(x, among)?.requiresGrad === true;
  check(!isLeft, "BAD_STATE", "step", () => replacedBy(x), "Make the optimizer after model.to(...).");
}
