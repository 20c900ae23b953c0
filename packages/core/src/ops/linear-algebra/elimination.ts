/** Gauss' elimination with the largest pivot of each column, in as many rounds as there are columns. */

import { tidy } from "../../device/scope";
import { div, less, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { denseStrides } from "../../values/shape";
import type { ElementwiseDefinition } from "../definition";
import { elementwise } from "../elementwise/elementwise";
import { extended } from "../elementwise/elementwise-table";
import { eq } from "../elementwise/logic";
import { positions } from "../indices/positions";
import { fill } from "../map";
import { argmax } from "../reduce/largest";
import { sum } from "../reduce/reduce";
import { copyBox } from "../shape/copy-box";
import { concat, slice } from "../shape/shape";
import { lessProduct } from "./less-product";

/** 0 under a pivot of 0, where the column is 0 already. */
const FACTOR: ElementwiseDefinition = {
  forward: (x, pivot) => where(less(pivot!, 0), div(x!, pivot!), where(less(0, pivot!), div(x!, pivot!), pivot!)),
  gradients: [null, null],
  result: "integer",
};

/** The triangle U, with what the right sides became beside it, and of each round the row (i32) that was swapped with its first. */
export interface Elimination {
  readonly rows: Tensor;
  readonly swaps: Tensor;
}

/** Of matrices [..., n, n + k], whose further columns are right sides. Without a gradient. */
export function eliminated(x: Tensor, extent: number): Elimination {
  const rows = fill(x.shape, 0, x.dtype, x.device);
  const strides = denseStrides(x.shape);
  const swaps: Tensor[] = [];
  let rest = x;
  for (let j = 0; j < extent; j++) {
    const before = rest;
    const round = tidy(() => {
      const { best, pivotRow, next } = reduced(before);
      const from = { offset: 0, strides: denseStrides(pivotRow.shape) };
      copyBox(pivotRow, rows, pivotRow.shape, from, { offset: j * (x.shape.at(-1)! + 1), strides });
      return { best, next };
    });
    if (before !== x) before.dispose();
    swaps.push(round.best);
    rest = round.next;
  }
  const none = positions([...x.shape.slice(0, -2), 0, 1], x.device);
  return { rows, swaps: concat([none, ...swaps], -2) };
}

/** One round: the pivot's row, and the other rows without their first column. */
function reduced(x: Tensor): { best: Tensor; pivotRow: Tensor; next: Tensor } {
  const height = x.shape.at(-2)!;
  const best = argmax(elementwise("abs", [slice(x, 0, 1, -1)]), -2, true);
  const isPivot = eq(positions([height, 1], x.device), best);
  const pivotRow = sum(elementwise("select", [isPivot, x, 0]), -2, true);
  // The first row takes the place of the pivot's.
  const below = (of: Tensor) => slice(of, 1, undefined, -2);
  const others = elementwise("select", [below(isPivot), slice(x, 0, 1, -2), below(x)]);
  const first = (of: Tensor) => slice(of, 0, 1, -1);
  const factors = elementwise(extended("eliminationFactor", FACTOR), [first(others), first(pivotRow)]);
  const right = (of: Tensor) => slice(of, 1, undefined, -1);
  return { best, pivotRow, next: lessProduct(right(others), factors, right(pivotRow)) };
}
