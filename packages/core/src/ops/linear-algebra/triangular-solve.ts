/** Systems with triangular matrices. */
import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import type { Tensor } from "../../tensor/tensor";
import { showShape } from "../../values/shape";
import { checkDevice } from "../check-device";
import { elementwise } from "../elementwise/elementwise";
import { matmul } from "../matmul";
import { transpose } from "../shape/shape";
import { checkMatrices, checkSquare, inFull } from "./check-matrices";
import type { TriangleOptions } from "./cholesky";
import { isDiagonal } from "./packed-rows";
import type { SolveOptions } from "./solve";
import { inverseOfTriangle } from "./triangle";

export interface TriangularSolveOptions extends TriangleOptions, SolveOptions {
  /** Whether the diagonal counts as ones, and is not read. Default false. */
  readonly unitriangular?: boolean;
}

/**
 * The x of a x = b, or of x a = b with `left: false`, for triangles a [..., n, n] of f32 or f64, by default lower ones; batches broadcast.
 * The other triangle is not read. As torch.linalg.solve_triangular, in as many products on the device as n has bits.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * triangularSolve(tensor([[2, 0], [1, 1]]), tensor([[2], [3]])); // [[1], [2]]
 */
export function triangularSolve(a: Tensor, b: Tensor, options: TriangularSolveOptions = {}): Tensor {
  const where = "triangularSolve";
  checkOptions(where, options, { upper: "boolean", left: "boolean", unitriangular: "boolean" });
  const { upper = false, left = true, unitriangular = false } = options;
  return inFull(where, [a, b], (triangle, sides) => {
    checkSquare(where, triangle, "a");
    checkMatrices(where, sides, "b");
    checkDevice(where, [triangle, sides]);
    const n = triangle.shape.at(-1)!;
    check(
      sides.shape.at(left ? -2 : -1) === n,
      "BAD_SHAPE",
      where,
      () => `b must fit to a, got ${showShape(sides.shape)} for ${showShape(triangle.shape)}.`,
      left ? "a x = b takes b [..., n, k]." : "x a = b takes b [..., k, n].",
    );
    return tidy(() => {
      const lower = upper ? transpose(triangle) : triangle;
      const read = unitriangular ? elementwise("select", [isDiagonal(n, a), 1, lower]) : lower;
      const inverse = inverseOfTriangle(read);
      return left ? matmul(inverse, sides, { transposeA: upper }) : matmul(sides, inverse, { transposeB: upper });
    });
  });
}
