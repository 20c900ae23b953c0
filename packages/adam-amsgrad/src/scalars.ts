/** Adam's per-step numbers, in float64, from the step number directly. */
import type { Counters } from "@opt/core";
import type { AdamOptions } from "./options";

/** At step t: the step size -lr / (1 - beta1^t), and sqrt(1 - beta2^t), by which sqrt(v) is corrected. */
export function adamScalars(options: AdamOptions, { step }: Counters): Record<string, number> {
  const { lr, betas, eps, weightDecay, decoupledWeightDecay } = options;
  return {
    decay: decoupledWeightDecay ? 1 - lr * weightDecay : weightDecay,
    oneMinusBeta1: 1 - betas[0],
    beta2: betas[1],
    oneMinusBeta2: 1 - betas[1],
    negStepSize: -(lr / (1 - betas[0] ** step)),
    biasCorrection2Sqrt: Math.sqrt(1 - betas[1] ** step),
    eps,
  };
}
