/** Triangles of matrices. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { showShape } from "../../values/shape";
import { cast } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { le } from "../elementwise/logic";
import { positions } from "../indices/positions";

/**
 * The lower triangle of matrices [..., rows, columns]: 0 where column - row > diagonal.
 *
 * @throws OptError BAD_SHAPE for less than two axes; BAD_ARGUMENT
 * @example
 * tril(ones([2, 2])); // [[1, 0], [1, 1]]
 */
export const tril = /* @__PURE__ */ definePrimitive(
  { torch: "a.tril($0)", tensors: ["...nm"], arguments: [-1] },
  (x: Tensor, diagonal = 0): Tensor => {
    const samples = overSamples(tril, x, diagonal);
    if (samples) return samples;
    return triangle("tril", x, diagonal, (offset) => le(offset, diagonal));
  },
);

/**
 * The upper triangle of matrices [..., rows, columns]: 0 where column - row < diagonal.
 *
 * @throws OptError BAD_SHAPE for less than two axes; BAD_ARGUMENT
 * @example
 * triu(ones([2, 2]), 1); // [[0, 1], [0, 0]]
 */
export const triu = /* @__PURE__ */ definePrimitive(
  { torch: "a.triu($0)", tensors: ["...nm"], arguments: [1] },
  (x: Tensor, diagonal = 0): Tensor => {
    const samples = overSamples(triu, x, diagonal);
    if (samples) return samples;
    return triangle("triu", x, diagonal, (offset) => le(diagonal, offset));
  },
);

function triangle(where: string, x: Tensor, diagonal: number, keeps: (offset: Tensor) => Tensor): Tensor {
  checkTensor(where, x);
  const isMatrix = x.shape.length >= 2;
  check(isMatrix, "BAD_SHAPE", where, () => `needs matrices [..., rows, columns], got ${showShape(x.shape)}.`);
  const isWhole = Number.isInteger(diagonal);
  checkValue(isWhole, where, "diagonal", "an integer", diagonal, "0 is the main one.");
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  return tidy(() => {
    const offset = elementwise("sub", [positions([columns], x.device), positions([rows, 1], x.device)]);
    return cast(elementwise("select", [keeps(offset), x, 0]), x.dtype);
  });
}
