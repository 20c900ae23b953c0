/** Linear systems, and inverses of matrices. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { promote } from "../../values/dtype";
import { broadcastShapes, sameShape, showShape } from "../../values/shape";
import { cast } from "../cast";
import { checkDevice } from "../check-device";
import { elementwise } from "../elementwise/elementwise";
import { eq } from "../elementwise/logic";
import { positions } from "../indices/positions";
import { lookAtResult } from "../look-at";
import { matmul } from "../matmul";
import { diagonalOf } from "../shape/diagonals";
import { expand, squeeze, unsqueeze } from "../shape/extents";
import { concat, slice, transpose } from "../shape/shape";
import { checkFloats, checkSquare, inFull } from "./check-matrices";
import { eliminated } from "./elimination";
import { inverseOfTriangle } from "./triangle";

export interface SolveOptions {
  /** Whether A stands left of x. Default true; false solves x A = b. */
  readonly left?: boolean;
}

/**
 * The x of A x = b, for invertible matrices A [..., n, n] of f32 or f64 and b [..., n, k], or vectors [..., n]; batches broadcast. As
 * torch.linalg.solve, a b with one axis less than A is vectors where its shape is that of A without the last. In n rounds on the device.
 * A singular matrix throws where the device shares the host's memory; elsewhere the result is not finite.
 *
 * @throws OptError BAD_ARGUMENT for a singular matrix; BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH
 * @example
 * solve(tensor([[2, 0], [0, 4]]), tensor([2, 2])); // [1, 0.5]
 */
export function solve(a: Tensor, b: Tensor, options: SolveOptions = {}): Tensor {
  const samples = overSamples(solve, a, b, options);
  if (samples) return samples;
  checkOptions("solve", options, { left: "boolean" });
  return inFull("solve", [a, b], (matrix, sides) => solution(matrix!, sides!, options.left ?? true));
}

function solution(a: Tensor, b: Tensor, left: boolean): Tensor {
  const where = "solve";
  checkSquare(where, a, "A");
  checkFloats(where, b, "b");
  checkDevice(where, [a, b]);
  const isVector = b.shape.length === 1 || sameShape(b.shape, a.shape.slice(0, -1));
  const extent = b.shape.length === 0 ? undefined : b.shape.at(isVector || !left ? -1 : -2);
  check(
    extent === a.shape.at(-1),
    "BAD_SHAPE",
    where,
    () => `b must have ${left ? "rows" : "columns"} for A, got ${showShape(b.shape)} for ${showShape(a.shape)}.`,
    "A x = b takes b [..., n, k] or vectors [..., n].",
  );
  return tidy(() => {
    const dtype = promote(a.dtype, b.dtype);
    const [matrix, sides] = [cast(a, dtype), cast(isVector ? unsqueeze(b, -1) : b, dtype)];
    const turn = left || isVector ? (x: Tensor) => x : (x: Tensor) => transpose(x);
    // x A = v is transpose(A) x = v for a vector v.
    const system = left ? matrix : transpose(matrix);
    const x = turn(broadcast(where, system, turn(sides)));
    return isVector ? squeeze(x, -1) : x;
  });
}

function broadcast(where: string, a: Tensor, b: Tensor): Tensor {
  const batch = broadcastShapes(where, [a.shape.slice(0, -2), b.shape.slice(0, -2)]);
  const stretched = (x: Tensor) => {
    const shape = [...batch, ...x.shape.slice(-2)];
    return sameShape(shape, x.shape) ? x : expand(x, shape);
  };
  return solved(where, stretched(a), stretched(b));
}

/** Of equal batches. */
function solved(where: string, a: Tensor, b: Tensor): Tensor {
  const extent = a.shape.at(-1)!;
  const output = noGrad(() =>
    tidy(() => {
      const { rows } = eliminated(concat([a, b], -1), extent);
      const upper = slice(rows, 0, extent, -1);
      checkPivots(where, diagonalOf(upper), extent);
      const inverse = inverseOfTriangle(transpose(upper));
      return matmul(inverse, slice(rows, extent, undefined, -1), { transposeA: true });
    }),
  );
  return record("solve", output, [a, b], [a, output], (g, [matrix, x], [needsA]) => {
    const ofB = solved(where, transpose(matrix!), g);
    return [needsA ? elementwise("neg", [matmul(ofB, x!, { transposeB: true })]) : null, ofB];
  });
}

function checkPivots(where: string, pivots: Tensor, extent: number): void {
  lookAtResult(pivots, (values) => {
    const failed = Array.prototype.indexOf.call(values, 0);
    check(
      failed < 0,
      "BAD_ARGUMENT",
      where,
      () => `the matrix must be invertible, its pivot ${failed % extent} is 0.`,
      "Add a small number to its diagonal.",
    );
  });
}

/**
 * The inverse of matrices [..., n, n] of f32 or f64: `solve` is more exact where it is only multiplied. A singular matrix throws where
 * the device shares the host's memory; elsewhere the result is not finite.
 *
 * @throws OptError BAD_ARGUMENT for a singular matrix; BAD_SHAPE, BAD_DTYPE
 * @example
 * inverse(tensor([[2, 0], [0, 4]])); // [[0.5, 0], [0, 0.25]]
 */
export function inverse(x: Tensor): Tensor {
  const samples = overSamples(inverse, x);
  if (samples) return samples;
  return inFull("inverse", [x], (matrix) => inverted(matrix!));
}

function inverted(x: Tensor): Tensor {
  checkSquare("inverse", x);
  const output = noGrad(() =>
    tidy(() => {
      const extent = x.shape.at(-1)!;
      const unit = eq(positions([extent, 1], x.device), positions([extent], x.device));
      return solved("inverse", x, expand(cast(unit, x.dtype), x.shape));
    }),
  );
  return record("inverse", output, [x], [output], (g, [y]) => [
    elementwise("neg", [matmul(matmul(y!, g, { transposeA: true }), y!, { transposeB: true })]),
  ]);
}
