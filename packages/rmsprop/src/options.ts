/** What RMSprop can be told. */
import type { BaseOptions } from "@opt/core";

export interface RMSpropOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-2. */
  lr: number;
  /** Decay rate of the running average of the squared gradient, >= 0. Default 0.99. */
  alpha: number;
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** What is kept of the momentum from step to step, >= 0. Default 0. */
  momentum: number;
  /** Divide by the standard deviation of the gradient instead of its root mean square. Default false. */
  centered: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}
