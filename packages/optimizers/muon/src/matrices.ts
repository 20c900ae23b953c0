/** The matrices of a parameter, each of which is orthogonalized alone. */
import { check, type Shape } from "@opt/core";

export interface MatrixOptions {
  readonly heads: number;
  readonly adjustLrFn: "original" | "match_rms_adamw";
}

/** [count, rows, columns]: one matrix, its blocks of rows, a batch, or filters as rows. @throws OptError BAD_SHAPE for rows that heads do not divide */
export function matricesIn(shape: Shape, { heads }: MatrixOptions): readonly [number, number, number] {
  const [count, rows, columns] = wholeMatrices(shape);
  check(
    rows % heads === 0,
    "BAD_SHAPE",
    "Muon",
    () => `heads must divide the rows of each matrix, got ${heads} heads and the shape [${shape}].`,
    "Give parameters without heads a group of their own.",
  );
  return [count * heads, rows / heads, columns];
}

function wholeMatrices(shape: Shape): readonly [number, number, number] {
  if (shape.length === 3) return shape as readonly [number, number, number];
  const [rows, ...rest] = shape as readonly [number, ...number[]];
  return [1, rows, rest.reduce((size, extent) => size * extent, 1)];
}

/** The factor of lr for a parameter's matrices. */
export function lrFactor(shape: Shape, options: MatrixOptions): number {
  const [, rows, columns] = matricesIn(shape, options);
  if (options.adjustLrFn === "match_rms_adamw") return 0.2 * Math.sqrt(Math.max(rows, columns));
  return Math.sqrt(Math.max(1, rows / columns));
}
