import { type Algorithm, checkBetas, checkBoolean, checkNotNegative, Optimizer } from "@opt/core";
import type { RAdamOptions } from "./options";
import { radamRule } from "./rule";
import { radamScalars } from "./scalars";

const radam: Algorithm<RAdamOptions> = {
  name: "RAdam",
  defaults: {
    lr: 1e-3,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0,
    decoupledWeightDecay: false,
    maximize: false,
  },
  validate(options) {
    for (const name of ["eps", "weightDecay"] as const) checkNotNegative("RAdam", name, options[name]);
    checkBetas("RAdam", options.betas);
    checkBoolean("RAdam", "decoupledWeightDecay", options.decoupledWeightDecay);
  },
  rule: ({ betas, weightDecay, decoupledWeightDecay }) =>
    radamRule({
      decay: weightDecay === 0 ? "none" : decoupledWeightDecay ? "decoupled" : "l2",
      smallBeta1: 1 - betas[0] >= 0.5,
    }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: radamScalars,
};

/**
 * RAdam: Adam that steps by momentum alone until its second moment has seen enough, and then rectifies its variance.
 *
 *     g = grad (+ weightDecay * p)          m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
 *     p -= lr * m / (1 - beta1^t) * (rho_t > 5 ? r_t * sqrt(1 - beta2^t) / (sqrt(v) + eps) : 1)
 *     rho_t = rho_inf - 2 t beta2^t / (1 - beta2^t)          rho_inf = 2 / (1 - beta2) - 1
 *     r_t = sqrt((rho_t - 4) (rho_t - 2) rho_inf / ((rho_inf - 4) (rho_inf - 2) rho_t))
 *
 * The numbers are those of torch.optim.RAdam (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond" (2020).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { RAdam } from "@opt/radam";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new RAdam([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class RAdam extends Optimizer<RAdamOptions> {
  protected override define(): Algorithm<RAdamOptions> {
    return radam;
  }
}
