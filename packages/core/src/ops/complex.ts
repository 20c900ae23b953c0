/** Complex numbers as pairs of real ones, and back: views, since a complex number is stored as its two parts. */

import { check } from "../errors/errors";
import { overSamples } from "../tensor/batching";
import { record } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { showShape } from "../values/shape";
import { checkAnyTensor } from "./check-tensor";

/**
 * The real and the imaginary part of each element, along one more axis: a view of f32, shape [..., 2], on the memory of a complex tensor.
 * As torch.view_as_real.
 *
 * @throws OptError BAD_DTYPE if x is not c64; BAD_ARGUMENT, DISPOSED
 * @example
 * const w = parameter(viewAsComplex(tensor([[3, 4], [0, 1]]))); // 3 + 4i and i
 * viewAsReal(w).pow(2).sum().backward(); // |w|^2: w.grad is 2 w
 */
export function viewAsReal(x: Tensor): Tensor {
  const samples = overSamples(viewAsReal, x);
  if (samples) return samples;
  checkAnyTensor("viewAsReal", x);
  check(x.dtype === "c64", "BAD_DTYPE", "viewAsReal", () => `needs complex numbers, got ${x.dtype}.`, "Leave it out.");
  return record("viewAsReal", x.alias([...x.shape, 2], 0, "f32"), [x], [], (g) => [viewAsComplex(g)]);
}

/**
 * The complex numbers whose parts lie along the last axis of x, of extent 2: a view of c64, shape [...], on its memory.
 * As torch.view_as_complex.
 *
 * @throws OptError BAD_DTYPE if x is not f32; BAD_SHAPE; BAD_ARGUMENT, DISPOSED
 * @example
 * const z = viewAsComplex(tensor([[3, 4], [0, 1]])); // 3 + 4i and i, shape [2]
 */
export function viewAsComplex(x: Tensor): Tensor {
  const samples = overSamples(viewAsComplex, x);
  if (samples) return samples;
  const where = "viewAsComplex";
  checkAnyTensor(where, x);
  check(
    x.dtype === "f32",
    "BAD_DTYPE",
    where,
    () => `complex numbers have parts of f32, got ${x.dtype}.`,
    `Use .to("f32").`,
  );
  check(
    x.shape.at(-1) === 2,
    "BAD_SHAPE",
    where,
    () => `the last axis must hold the two parts, got shape ${showShape(x.shape)}.`,
    "For example [n, 2].",
  );
  return record(where, x.alias(x.shape.slice(0, -1), 0, "c64"), [x], [], (g) => [viewAsReal(g)]);
}
