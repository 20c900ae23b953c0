/** Inverses of triangular matrices, by doubling: as few launches as the extent has bits. */

import { tidy } from "../../device/scope";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { elementwise } from "../elementwise/elementwise";
import { eq } from "../elementwise/logic";
import { places, positions } from "../indices/positions";
import { matmul } from "../matmul";
import { diagonalOf } from "../shape/diagonals";
import { unsqueeze } from "../shape/extents";
import { tril } from "../shape/triangle";

/** The inverse of lower triangles [..., n, n]; what is above the diagonal is not read, and has the gradient 0. */
export function inverseOfTriangle(lower: Tensor): Tensor {
  const output = noGrad(() => tidy(() => doubled(lower)));
  return record("inverseOfTriangle", output, [lower], [output], (g, [inverse]) => {
    const both = matmul(matmul(inverse!, g, { transposeA: true }), inverse!, { transposeB: true });
    return [tril(elementwise("neg", [both]))];
  });
}

/**
 * X is the inverse of the blocks of a size on the diagonal, at first of 1. Of two neighbours and the block B below the first one, the inverse
 * is X2 and X1 with -X2 B X1 below; one product of whole matrices does it for all pairs.
 */
function doubled(lower: Tensor): Tensor {
  const { device } = lower;
  const extent = lower.shape.at(-1)!;
  const isDiagonal = eq(positions([extent, 1], device), positions([extent], device));
  const reciprocals = unsqueeze(elementwise("div", [1, diagonalOf(lower)]), -2);
  let inverse = elementwise("select", [isDiagonal, reciprocals, 0]);
  for (let size = 1; size < extent; size *= 2) {
    const block = (i: number) => Math.floor(i / size);
    // An odd block of rows meets the even block of columns before it.
    const ofRows = places([extent, 1], device, (i) => (block(i) % 2 === 1 ? block(i) : -1));
    const ofColumns = places([extent], device, (i) => block(i) + 1);
    const below = elementwise("select", [eq(ofRows, ofColumns), lower, 0]);
    inverse = elementwise("sub", [inverse, matmul(matmul(inverse, below), inverse)]);
  }
  return inverse;
}
