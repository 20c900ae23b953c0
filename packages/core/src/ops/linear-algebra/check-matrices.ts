/** Operands of linear algebra: matrices of float32 or float64. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { autocast, autocastDType } from "../../tensor/autocast";
import type { Tensor } from "../../tensor/tensor";
import { byteSize } from "../../values/dtype";
import { showShape } from "../../values/shape";
import { cast } from "../cast";
import { checkTensor } from "../check-tensor";

/** @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT, DISPOSED */
export function checkSquare(where: string, x: unknown, name = "x"): asserts x is Tensor {
  checkFloats(where, x, name);
  const { shape } = x;
  const isSquare = shape.length >= 2 && shape.at(-1) === shape.at(-2);
  check(
    isSquare,
    "BAD_SHAPE",
    where,
    () => `${name} must be square matrices [..., n, n], got ${showShape(shape)}.`,
    "Matrices are the last two axes.",
  );
}

/** @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT, DISPOSED */
export function checkMatrices(where: string, x: unknown, name = "x"): asserts x is Tensor {
  checkFloats(where, x, name);
  const { shape } = x;
  check(
    shape.length >= 2,
    "BAD_SHAPE",
    where,
    () => `${name} must be matrices [..., m, n], got ${showShape(shape)}.`,
    "Matrices are the last two axes.",
  );
}

/** @throws OptError BAD_DTYPE, BAD_ARGUMENT, DISPOSED */
export function checkFloats(where: string, x: unknown, name: string): asserts x is Tensor {
  checkTensor(where, x, name);
  const { dtype } = x;
  check(
    dtype === "f32" || dtype === "f64",
    "BAD_DTYPE",
    where,
    () => `${name} must be f32 or f64, got ${dtype}.`,
    'Cast with to("f32").',
  );
}

/** Within autocast operands of 16 bits become float32, and products stay what they are: as torch.autocast does. */
export function inFull<Result>(
  where: string,
  operands: readonly Tensor[],
  op: (...operands: Tensor[]) => Result,
): Result {
  for (const [i, operand] of operands.entries()) checkTensor(where, operand, `operand ${i}`);
  if (autocastDType() === null) return op(...operands);
  const wide = (x: Tensor) => (byteSize(x.dtype) === 2 ? cast(x, "f32") : x);
  return tidy(() => autocast(null, () => op(...operands.map(wide))));
}
