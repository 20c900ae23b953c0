/** What Adam can be told. */
import type { BaseOptions } from "@opt/core";

export interface AdamOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Weight decay, >= 0. Default 0 (AdamW: 1e-2). */
  weightDecay: number;
  /** Divide by the largest running average so far instead of the present one. Default false. */
  amsgrad: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
  /** Take the decay off the parameter instead of adding it to the gradient: AdamW. Default false (AdamW: always true). */
  decoupledWeightDecay: boolean;
}
