/** What backward needs, of results that some devices compute in one kernel and others op by op. */

import { record } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";

/**
 * Makes the gradient of `output` depend on `tensors`, as the kernel `name` does. So backward throws on every device after one of them was
 * overwritten. Takes `output` over.
 */
export function needing(name: string, output: Tensor, tensors: readonly Tensor[]): Tensor {
  const result = record(name, output.alias(), [output], tensors, (g) => [g]);
  output.dispose();
  return result;
}
