/** Norms of inputs without elements: an empty batch, or the last one of a filtered data set. */
import type { Tensor } from "@opt/core";

/** The planes [outer, channels, inner], of which one extent is 0, with gradients of zeros for weight and bias, as PyTorch gives them. */
export function normOfNothing(planes: Tensor, weight: Tensor | null, bias: Tensor | null): Tensor {
  const scaled = weight === null ? planes : planes.mul(weight.unsqueeze(1));
  return bias === null ? scaled : scaled.add(bias.unsqueeze(1));
}
