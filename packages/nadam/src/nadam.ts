import { type Algorithm, checkBetas, checkBoolean, checkNotNegative, Optimizer } from "@opt/core";
import type { NAdamOptions } from "./options";
import { nadamRule } from "./rule";
import { advanceNAdam, nadamScalars } from "./scalars";

const nadam: Algorithm<NAdamOptions> = {
  name: "NAdam",
  defaults: {
    lr: 2e-3,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0,
    momentumDecay: 4e-3,
    decoupledWeightDecay: false,
    maximize: false,
  },
  validate(options) {
    for (const name of ["eps", "weightDecay", "momentumDecay"] as const) checkNotNegative("NAdam", name, options[name]);
    checkBetas("NAdam", options.betas);
    checkBoolean("NAdam", "decoupledWeightDecay", options.decoupledWeightDecay);
  },
  rule: ({ betas, weightDecay, decoupledWeightDecay }) =>
    nadamRule({
      decay: weightDecay === 0 ? "none" : decoupledWeightDecay ? "decoupled" : "l2",
      smallBeta1: 1 - betas[0] >= 0.5,
    }),
  initialCounters: { step: 0, mu_product: 1 },
  advance: advanceNAdam,
  scalars: nadamScalars,
};

/**
 * NAdam: Adam with Nesterov momentum.
 *
 *     g = grad (+ weightDecay * p)          m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
 *     p -= lr * ((1 - mu_t) g / (1 - prod mu) + mu_{t+1} m / (1 - prod mu * mu_{t+1})) / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * The numbers are those of torch.optim.NAdam (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * Source: Dozat, "Incorporating Nesterov Momentum into Adam" (2016). Paddle's differs in the iterated decay product, Keras' in psi = 1.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { NAdam } from "@opt/nadam";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new NAdam([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class NAdam extends Optimizer<NAdamOptions> {
  protected override define(): Algorithm<NAdamOptions> {
    return nadam;
  }
}
