/** Ops that are linear, but whose gradient PyTorch takes for one that depends on the input. */

import { record } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { checkTensor } from "./check-tensor";

/** A view of x. A gradient that goes back through it has the gradient 0 by x rather than null: see `record`'s `flat`. */
export function withFlatGradient(x: Tensor): Tensor {
  checkTensor("withFlatGradient", x);
  return record("flat", x.alias(), [x], [], (g) => [g], [0]);
}
