/** Factors of a matrix side by side in one tensor: one entry of the tape then has the history of all of them. */
import type { Tensor } from "../../tensor/tensor";
import { elementwise } from "../elementwise/elementwise";
import { eq } from "../elementwise/logic";
import { positions } from "../indices/positions";
import { slice, transpose } from "../shape/shape";

/** The parts of given widths along the last axis. */
export function partsOf(packed: Tensor, widths: readonly number[]): Tensor[] {
  let start = 0;
  return widths.map((width) => {
    start += width;
    return slice(packed, start - width, start, -1);
  });
}

/** True on the diagonal of [n, n]. */
export function isDiagonal(n: number, { device }: Tensor): Tensor {
  return eq(positions([n, 1], device), positions([n], device));
}

/** a / b, and 0 where both are 0: what has no gradient is not spoilt by equal eigenvalues. */
export function quotient(a: Tensor, b: Tensor): Tensor {
  const isZero = (x: Tensor) => eq(x, 0);
  const divisor = elementwise("select", [isZero(b), elementwise("select", [isZero(a), 1, b]), b]);
  return elementwise("div", [a, divisor]);
}

/** The difference of a row's elements j and i at (i, j), and 1 on the diagonal. @param values [..., 1, n] */
export function gaps(values: Tensor, n: number): Tensor {
  const difference = elementwise("sub", [values, transpose(values)]);
  return elementwise("select", [isDiagonal(n, values), 1, difference]);
}
