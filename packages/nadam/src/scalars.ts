/** NAdam's per-step numbers, in float64, from the step number directly. */
import type { Counters } from "@opt/core";
import type { NAdamOptions } from "./options";

/** mu_t = beta1 (1 - 0.5 * 0.96^(t * momentumDecay)) (Dozat 2016, section 2). */
function momentumAt(step: number, { betas, momentumDecay }: NAdamOptions): number {
  return betas[0] * (1 - 0.5 * 0.96 ** (step * momentumDecay));
}

/** PyTorch keeps the product of the mu_t in float32; one that was loaded becomes float32 here. */
export function advanceNAdam({ step, mu_product }: Counters, options: NAdamOptions): Counters {
  const mu = momentumAt(step + 1, options);
  return { step: step + 1, mu_product: Math.fround(Math.fround(mu_product!) * Math.fround(mu)) };
}

/** At step t: the steps along the gradient, -lr (1 - mu_t) / (1 - muProduct), and along the momentum, -lr mu_{t+1} / (1 - muProduct mu_{t+1}). */
export function nadamScalars(options: NAdamOptions, { step, mu_product }: Counters): Record<string, number> {
  const { lr, betas, eps, weightDecay, decoupledWeightDecay } = options;
  const mu = momentumAt(step, options);
  const muNext = momentumAt(step + 1, options);
  return {
    decay: decoupledWeightDecay ? 1 - lr * weightDecay : weightDecay,
    oneMinusBeta1: 1 - betas[0],
    beta2: betas[1],
    oneMinusBeta2: 1 - betas[1],
    biasCorrection2: 1 - betas[1] ** step,
    eps,
    negGradStep: (-lr * (1 - mu)) / (1 - mu_product!),
    negMomentumStep: (-lr * muNext) / (1 - mu_product! * muNext),
  };
}
