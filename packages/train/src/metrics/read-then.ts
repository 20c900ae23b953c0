/** Reads a small tensor: now, or later where its device cannot answer at once. */
import type { Tensor } from "@opt/core";

/** Whether tensors of this device can be read at once. */
export const answersAtOnce = ({ device }: Tensor): boolean => device.backend.readSync !== undefined;

/** Hands the values to `take`, and frees the tensor. */
export function readThen(tensor: Tensor, take: (values: ArrayLike<number>) => void): Promise<void> | undefined {
  if (!answersAtOnce(tensor))
    return tensor
      .data()
      .then(take)
      .finally(() => tensor.dispose());
  take(tensor.dataSync());
  tensor.dispose();
  return undefined;
}
