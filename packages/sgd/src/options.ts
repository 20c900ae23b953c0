/** What SGD can be told. */
import type { BaseOptions } from "@opt/core";

export interface SGDOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** What is kept of the momentum from step to step, >= 0; 0: none is kept at all. Default 0. */
  momentum: number;
  /** How much less of the gradient goes into the momentum, >= 0. Default 0. */
  dampening: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Step along the gradient and the momentum after it; needs a momentum and no dampening. Default false. */
  nesterov: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}
