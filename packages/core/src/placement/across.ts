/** Small values that all ranks with parts of some tensors must agree on. */

import { runsOnce } from "../device/host-code";
import type { MeshAxis } from "../tensor/placement";
import { decode, readBytesSync } from "../tensor/read";
import type { Tensor } from "../tensor/tensor";

/** @throws OptError UNSUPPORTED in a compiled function: its replays exchange nothing */
export function checkExchange({ size }: MeshAxis<Tensor>): void {
  if (size === 1) return;
  runsOnce("placement", "exchange parts of tensors", "Compile forward and backward; clip, scale and step outside.");
}

/** The axes over which tensors are cut, each once, in the order of the tensors. */
export function axesOf(tensors: readonly Tensor[]): MeshAxis<Tensor>[] {
  const axes = new Set<MeshAxis<Tensor>>();
  for (const { placement } of tensors) for (const { axis } of placement?.cuts ?? []) axes.add(axis);
  return [...axes];
}

/** The largest of a tensor of one element over the ranks of these axes. It waits for them. @throws OptError NOT_SYNC, UNSUPPORTED in a compiled function */
export function largestOf(x: Tensor, axes: readonly MeshAxis<Tensor>[]): Tensor {
  for (const axis of axes) checkExchange(axis);
  const values = Float64Array.from(decode(x, readBytesSync(x)));
  for (const axis of axes) axis.max(values);
  return x.mul(0).add(values[0]!);
}
