/** What tells that memory was written since somebody looked. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { Tensor } from "./tensor";

/**
 * How often the memory of a tensor was overwritten, through whichever view: PyTorch's `_version`.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const x = zeros([2]);
 * const before = versionOf(x);
 * x.set([1, 2]);
 * versionOf(x) > before; // true
 */
export function versionOf(x: Tensor): number {
  check(x instanceof Tensor, "BAD_ARGUMENT", "versionOf", () => `needs a tensor, got ${show(x)}.`);
  return x.storage.version;
}
