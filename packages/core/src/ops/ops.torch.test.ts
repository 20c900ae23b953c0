// Every op beside PyTorch: values, gradients, and whether gradients of gradients are numbers, zeros or null.
import { storedSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import { OP_ROWS, opCalls } from "../../testing/op-calls";
import * as functions from "../functions";

await storedSuite(new URL("../../testing/goldens/ops.json", import.meta.url), opCalls(1, Object.keys(OP_ROWS).length));

/** Compared in tables of their own, or without a result on the device. */
const ELSEWHERE = `allclose angle bincount cholesky choleskySolve complex complexAbs complexEinsum complexMul conj det eigh
  eigvalsh equal fft fft2 fftn fftshift ifft ifft2 ifftn ifftshift imag inverse irfft irfft2
  logdet lstsq lu maskedSelect matrixExp matrixNorm matrixPower nonzero pinv polar qr real rfft rfft2
  slogdet solve svd svdvals triangularSolve unique`;

it("has a row for each function", () => {
  const rows = new Set(Object.keys(OP_ROWS).map((name) => /\w+/.exec(name)![0]));
  const without = Object.keys(functions).filter((name) => !rows.has(name));
  expect(without.sort()).toEqual(ELSEWHERE.split(/\s+/));
});
