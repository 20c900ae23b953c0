/** Adamax's per-step numbers, in float64, from the step number directly. */
import type { Counters } from "@opt/core";
import type { AdamaxOptions } from "./options";

/** At step t: the step size -lr / (1 - beta1^t). */
export function adamaxScalars(options: AdamaxOptions, { step }: Counters): Record<string, number> {
  const { lr, betas, eps, weightDecay } = options;
  return {
    decay: weightDecay,
    oneMinusBeta1: 1 - betas[0],
    beta2: betas[1],
    eps,
    negStepSize: -(lr / (1 - betas[0] ** step)),
  };
}
