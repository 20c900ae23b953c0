/** Images and sequences, with a batch or alone. */
import { check, checkTensor, type Tensor, tidy } from "@opt/core";

const AXES = [["length"], ["height", "width"], ["depth", "height", "width"]] as const;

/** Calls `run` with [batch, channels, ...extents], of which x may lack the batch. @throws OptError BAD_SHAPE */
export function batched(where: string, x: Tensor, axes: 1 | 2 | 3, run: (x: Tensor) => Tensor): Tensor {
  checkTensor(where, x);
  const rank = x.shape.length;
  check(
    rank === axes + 2 || rank === axes + 1,
    "BAD_SHAPE",
    where,
    () => `the input must be [batch, channels, ${AXES[axes - 1]!.join(", ")}] or lack the batch, got [${x.shape}].`,
    "Reshape it.",
  );
  return rank === axes + 2 ? run(x) : tidy(() => run(x.unsqueeze(0)).squeeze(0));
}
