/** Adamax's per-step numbers, in float64, from the step number directly. */
import type { Arithmetic, Counters } from "@opt/core";
import type { AdamaxOptions } from "./options";

/** At step t: the step size -lr / (1 - beta1^t). */
export function adamaxScalars(
  options: AdamaxOptions,
  { step }: Counters,
  { sub, div, neg, pow }: Arithmetic,
): Record<string, number> {
  const { lr, betas, eps, weightDecay } = options;
  return {
    decay: weightDecay,
    oneMinusBeta1: sub(1, betas[0]),
    beta2: betas[1],
    eps,
    negStepSize: neg(div(lr, sub(1, pow(betas[0], step)))),
  };
}
