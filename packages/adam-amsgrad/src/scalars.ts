/** Adam's per-step numbers, in float64, from the step number directly. */
import type { Arithmetic, Counters } from "@opt/core";
import type { AdamOptions } from "./options";

/** At step t: the step size -lr / (1 - beta1^t), and sqrt(1 - beta2^t), by which sqrt(v) is corrected. */
export function adamScalars(
  options: AdamOptions,
  { step }: Counters,
  { sub, mul, div, neg, pow, sqrt }: Arithmetic,
): Record<string, number> {
  const { lr, betas, eps, weightDecay, decoupledWeightDecay } = options;
  return {
    decay: decoupledWeightDecay ? sub(1, mul(lr, weightDecay)) : weightDecay,
    oneMinusBeta1: sub(1, betas[0]),
    beta2: betas[1],
    oneMinusBeta2: sub(1, betas[1]),
    negStepSize: neg(div(lr, sub(1, pow(betas[0], step)))),
    biasCorrection2Sqrt: sqrt(sub(1, pow(betas[1], step))),
    eps,
  };
}
