import { type Algorithm, checkBetas, checkNotNegative, Optimizer } from "@opt/core";
import type { AdamaxOptions } from "./options";
import { adamaxRule } from "./rule";
import { adamaxScalars } from "./scalars";

const adamax: Algorithm<AdamaxOptions> = {
  name: "Adamax",
  defaults: { lr: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, maximize: false },
  validate(options) {
    for (const name of ["eps", "weightDecay"] as const) checkNotNegative("Adamax", name, options[name]);
    checkBetas("Adamax", options.betas);
  },
  rule: ({ betas, weightDecay }) => adamaxRule({ decay: weightDecay !== 0, smallBeta1: 1 - betas[0] >= 0.5 }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: adamaxScalars,
};

/**
 * Adamax: Adam with the largest decayed magnitude of the gradient in place of its root mean square.
 *
 *     g = grad (+ weightDecay * p)          m = beta1 m + (1 - beta1) g          u = max(beta2 u, |g| + eps)
 *     p -= lr / (1 - beta1^t) * m / u
 *
 * The numbers are those of torch.optim.Adamax (PyTorch 2.13), bit for bit in float32.
 * Source: Kingma & Ba, "Adam: A Method for Stochastic Optimization" (2015), section 7.1. Paddle and Keras add eps elsewhere.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Adamax } from "@opt/adamax";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Adamax([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Adamax extends Optimizer<AdamaxOptions> {
  protected override define(): Algorithm<AdamaxOptions> {
    return adamax;
  }
}
