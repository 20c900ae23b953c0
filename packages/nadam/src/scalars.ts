/** NAdam's per-step numbers, in float64, from the step number directly. */
import type { Arithmetic, Counters } from "@opt/core";
import type { NAdamOptions } from "./options";

/** mu_t = beta1 (1 - 0.5 * 0.96^(t * momentumDecay)) (Dozat 2016, section 2). */
function momentumAt(step: number, { betas, momentumDecay }: NAdamOptions, { sub, mul, pow }: Arithmetic): number {
  return mul(betas[0], sub(1, mul(0.5, pow(0.96, mul(step, momentumDecay)))));
}

/** PyTorch keeps the product of the mu_t in float32; one that was loaded becomes float32 here. */
export function advanceNAdam({ step, mu_product }: Counters, options: NAdamOptions, arithmetic: Arithmetic): Counters {
  const { mul, fround } = arithmetic;
  const mu = momentumAt(step + 1, options, arithmetic);
  return { step: step + 1, mu_product: fround(mul(fround(mu_product!), fround(mu))) };
}

/** At step t: the steps along the gradient, -lr (1 - mu_t) / (1 - muProduct), and along the momentum, -lr mu_{t+1} / (1 - muProduct mu_{t+1}). */
export function nadamScalars(
  options: NAdamOptions,
  { step, mu_product }: Counters,
  arithmetic: Arithmetic,
): Record<string, number> {
  const { lr, betas, eps, weightDecay, decoupledWeightDecay } = options;
  const { sub, mul, div, neg, pow } = arithmetic;
  const mu = momentumAt(step, options, arithmetic);
  const muNext = momentumAt(step + 1, options, arithmetic);
  return {
    decay: decoupledWeightDecay ? sub(1, mul(lr, weightDecay)) : weightDecay,
    oneMinusBeta1: sub(1, betas[0]),
    beta2: betas[1],
    oneMinusBeta2: sub(1, betas[1]),
    biasCorrection2: sub(1, pow(betas[1], step)),
    eps,
    negGradStep: div(mul(neg(lr), sub(1, mu)), sub(1, mu_product!)),
    negMomentumStep: div(mul(neg(lr), muNext), sub(1, mul(mu_product!, muNext))),
  };
}
