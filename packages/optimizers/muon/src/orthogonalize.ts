/** The nearest orthogonal matrix, roughly, by matrix products in bfloat16. */
import type { Tensor } from "@opt/core";

/** What Muon's options say of it. */
interface Iteration {
  readonly nsCoefficients: readonly [number, number, number];
  readonly nsSteps: number;
  readonly eps: number;
  readonly adjustLrFn: "original" | "match_rms_adamw";
}

/** Numbers of bfloat16, in float32 for what is computed of them. */
const rounded = (x: Tensor) => x.to("bf16").to("f32");

/**
 * The direction of a step for `update` [m, n], times the factor of lr: with update = u s v^T about u v^T, in float32.
 * Each result is rounded to bfloat16 and each sum is of float32 numbers, as PyTorch's matrix products in bfloat16 do.
 * Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024); torch.optim.Muon.
 */
export function orthogonalized(update: Tensor, options: Iteration): Tensor {
  const [rows, columns] = update.shape as [number, number];
  const { nsCoefficients, nsSteps, eps } = options;
  const [a, b, c] = nsCoefficients;
  const isTall = rows > columns;
  const wide = rounded(isTall ? update.transpose() : update);
  const norm = rounded(wide.mul(wide).sum().sqrt());
  let x = rounded(wide.div(rounded(norm.maximum(eps))));
  for (let i = 0; i < nsSteps; i++) {
    const gram = rounded(x.matmul(x, { transposeB: true }));
    const polynomial = rounded(gram.mul(b).add(gram.matmul(gram).mul(c)));
    x = rounded(x.mul(a).add(polynomial.matmul(x)));
  }
  return (isTall ? x.transpose() : x).to(update.dtype).mul(lrFactor(rows, columns, options));
}

function lrFactor(rows: number, columns: number, { adjustLrFn }: Iteration): number {
  if (adjustLrFn === "match_rms_adamw") return 0.2 * Math.sqrt(Math.max(rows, columns));
  return Math.sqrt(Math.max(1, rows / columns));
}
