/** What Adamax can be told. */
import type { BaseOptions } from "@opt/core";

export interface AdamaxOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 2e-3. */
  lr: number;
  /** Decay rates of the running average of the gradient and of its largest magnitude, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the gradient's magnitude, >= 0. Default 1e-8. */
  eps: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}
