/** What Muon can be told. */
import type { BaseOptions } from "@opt/core";

export interface MuonOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Weight decay, >= 0, decoupled from the gradient. Default 0.1. */
  weightDecay: number;
  /** Weight of the old momentum in the average of gradients, >= 0. Default 0.95. */
  momentum: number;
  /** Orthogonalize the average of the gradient and the momentum. Default true. */
  nesterov: boolean;
  /** a, b, c of the iteration x = a x + (b x x^T + c (x x^T)^2) x. Default [3.4445, -4.775, 2.0315]. */
  nsCoefficients: readonly [number, number, number];
  /** Least norm to divide by, >= 0. Default 1e-7. */
  eps: number;
  /** Iterations, 0 to 99. Default 5. */
  nsSteps: number;
  /** The factor of lr for a matrix [m, n]: sqrt(max(1, m / n)), or 0.2 sqrt(max(m, n)), by which lr and decay tuned for AdamW serve. Default "original". */
  adjustLrFn: "original" | "match_rms_adamw";
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}
