/** RAdam's per-step numbers, in float64, from the step number directly. */
import type { Counters } from "@opt/core";
import type { RAdamOptions } from "./options";

/**
 * At step t: the rectification of the variance, sqrt((rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t)),
 * rho_t being the length of the average that v has come to; 0 while that is too short (5 or less) to divide by.
 */
function rectificationAt(step: number, beta2: number): number {
  const longest = 2 / (1 - beta2) - 1;
  const length = longest - (2 * step * beta2 ** step) / (1 - beta2 ** step);
  if (!(length > 5)) return 0;
  return Math.sqrt(((length - 4) * (length - 2) * longest) / ((longest - 4) * (longest - 2) * length));
}

export function radamScalars(options: RAdamOptions, { step }: Counters): Record<string, number> {
  const { lr, betas, eps, weightDecay, decoupledWeightDecay } = options;
  return {
    decay: decoupledWeightDecay ? 1 - lr * weightDecay : weightDecay,
    oneMinusBeta1: 1 - betas[0],
    beta2: betas[1],
    oneMinusBeta2: 1 - betas[1],
    biasCorrection1: 1 - betas[0] ** step,
    biasCorrection2Sqrt: Math.sqrt(1 - betas[1] ** step),
    eps,
    lr,
    rectification: rectificationAt(step, betas[1]),
  };
}
