/** What backward needs, of results that some devices compute in one kernel and others op by op. */

import { record } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";

/**
 * Puts on the tape that the gradient of `output` needs `tensors` as they are, as that of the kernel `name` does: so every device refuses
 * what was overwritten alike. Takes `output` over.
 */
export function needing(name: string, output: Tensor, tensors: readonly Tensor[]): Tensor {
  const result = record(name, output.alias(), [output], tensors, (g) => [g]);
  output.dispose();
  return result;
}
