/** Parts of a tensor in its own memory, for who trains or moves a tensor in parts. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { Tensor } from "./tensor";

/**
 * Elements [begin, end) of a tensor, row-major, as a vector on the same memory, without a tape: what is written to one is seen in the other.
 *
 * @throws OptError BAD_ARGUMENT, DISPOSED
 * @example
 * const weight = tensor([[1, 2], [3, 4]]);
 * span(weight, 1, 3).set([7, 8]); // weight is [[1, 7], [8, 4]]
 */
export function span(x: Tensor, begin: number, end: number): Tensor {
  check(x instanceof Tensor, "BAD_ARGUMENT", "span", () => `needs a tensor, got ${show(x)}.`);
  const areInside = Number.isInteger(begin) && Number.isInteger(end) && 0 <= begin && begin <= end && end <= x.size;
  check(
    areInside,
    "BAD_ARGUMENT",
    "span",
    () => `begin and end must be whole numbers, 0 <= begin <= end <= ${x.size}, got ${show(begin)}, ${show(end)}.`,
  );
  check(!x.sparse, "BAD_ARGUMENT", "span", () => "a row-sparse tensor has no contiguous elements.", "Use toDense().");
  return x.alias([end - begin], begin);
}
