/** What NAdam can be told. */
import type { BaseOptions } from "@opt/core";

export interface NAdamOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 2e-3. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** psi in mu_t = beta1 (1 - 0.5 * 0.96^(t psi)), >= 0. Default 4e-3. */
  momentumDecay: number;
  /** Take the decay off the parameter (as AdamW does) instead of adding it to the gradient. Default false. */
  decoupledWeightDecay: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}
