/** What tells recorded steps that a tensor is no longer where it was held. */
import { changes } from "../device/versions";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { Tensor } from "./tensor";

/**
 * Says that another tensor has taken this one's place, in a model for example: replays of steps that were recorded with it are refused.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const held = { mask: ones([2]) };
 * const before = held.mask;
 * held.mask = zeros([2]);
 * markReplaced(before);
 */
export function markReplaced(x: Tensor): void {
  check(x instanceof Tensor, "BAD_ARGUMENT", "markReplaced", () => `needs a tensor, got ${show(x)}.`);
  x.replaced = (x.replaced ?? 0) + 1;
  if (x.isWatched) changes.disposed++;
}
