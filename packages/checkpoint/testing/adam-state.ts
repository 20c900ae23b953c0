import type { OptimizerState } from "@opt/core";
import { tensor } from "@opt/core";

/** What an Adam of one parameter `w` with two elements gives as its state. */
export function adamState(): OptimizerState {
  const moments = { exp_avg: tensor([3, 4]), exp_avg_sq: tensor([5, 6]) };
  const options = { lr: 0.5, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0.25, amsgrad: false, maximize: false };
  return { groups: [{ params: ["w"], ...options }], state: { w: { step: 7, ...moments } } };
}
