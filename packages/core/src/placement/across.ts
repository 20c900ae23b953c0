/** Small values that all ranks with parts of some tensors must agree on. */
import { maxOver, reshape } from "../ops";
import type { MeshAxis } from "../tensor/placement";
import type { Tensor } from "../tensor/tensor";

/** The axes over which tensors are cut, each once, in the order of the tensors. */
export function axesOf(tensors: readonly Tensor[]): MeshAxis<Tensor>[] {
  const axes = new Set<MeshAxis<Tensor>>();
  for (const { placement } of tensors) for (const { axis } of placement?.cuts ?? []) axes.add(axis);
  return [...axes];
}

/** The largest of a tensor of one element over the ranks of these axes. It waits for them. @throws OptError NOT_SYNC */
export function largestOf(x: Tensor, axes: readonly MeshAxis<Tensor>[]): Tensor {
  const largest = axes.reduce(
    (largest, axis) => {
      const all = axis.gather([{ tensor: largest, dim: 0, length: axis.size }])[0]!;
      return maxOver(all, 0, true);
    },
    reshape(x, [1]),
  );
  return reshape(largest, x.shape);
}
