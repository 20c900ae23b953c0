/** RAdam's per-step numbers, in float64, from the step number directly. */
import type { Arithmetic, Counters } from "@opt/core";
import type { RAdamOptions } from "./options";

/**
 * At step t: the rectification of the variance, sqrt((rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t)),
 * rho_t being the length of the average that v has come to; 0 while that is too short (5 or less) to divide by.
 */
function rectificationAt(step: number, beta2: number, arithmetic: Arithmetic): number {
  const { sub, mul, div, pow, sqrt, less, select } = arithmetic;
  const longest = sub(div(2, sub(1, beta2)), 1);
  const power = pow(beta2, step);
  const length = sub(longest, div(mul(2 * step, power), sub(1, power)));
  const isLong = less(5, length);
  const numerator = mul(mul(sub(length, 4), sub(length, 2)), longest);
  const ratio = div(numerator, mul(mul(sub(longest, 4), sub(longest, 2)), length));
  // Chosen before the root too: what is below 0 has a root that has no gradient.
  return select(isLong, sqrt(select(isLong, ratio, 1)), 0);
}

export function radamScalars(
  options: RAdamOptions,
  { step }: Counters,
  arithmetic: Arithmetic,
): Record<string, number> {
  const { lr, betas, eps, weightDecay, decoupledWeightDecay } = options;
  const { sub, mul, pow, sqrt } = arithmetic;
  return {
    decay: decoupledWeightDecay ? sub(1, mul(lr, weightDecay)) : weightDecay,
    oneMinusBeta1: sub(1, betas[0]),
    beta2: betas[1],
    oneMinusBeta2: sub(1, betas[1]),
    biasCorrection1: sub(1, pow(betas[0], step)),
    biasCorrection2Sqrt: sqrt(sub(1, pow(betas[1], step))),
    eps,
    lr,
    rectification: rectificationAt(step, betas[1], arithmetic),
  };
}
