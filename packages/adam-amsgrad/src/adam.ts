import { type Algorithm, checkBetas, checkBoolean, checkNotNegative, Optimizer } from "@opt/core";
import type { AdamOptions } from "./options";
import { adamRule } from "./rule";
import { adamScalars } from "./scalars";

function algorithm(name: string, defaults: Partial<AdamOptions>, fixed?: Partial<AdamOptions>): Algorithm<AdamOptions> {
  return {
    name,
    defaults: {
      lr: 1e-3,
      betas: [0.9, 0.999],
      eps: 1e-8,
      weightDecay: 0,
      amsgrad: false,
      maximize: false,
      decoupledWeightDecay: false,
      ...defaults,
    },
    fixed,
    validate(options) {
      for (const option of ["eps", "weightDecay"] as const) checkNotNegative(name, option, options[option]);
      checkBetas(name, options.betas);
      for (const option of ["amsgrad", "decoupledWeightDecay"] as const) checkBoolean(name, option, options[option]);
    },
    rule: ({ betas, weightDecay, decoupledWeightDecay, amsgrad }) =>
      adamRule({
        amsgrad,
        decay: weightDecay === 0 ? "none" : decoupledWeightDecay ? "decoupled" : "l2",
        smallBeta1: 1 - betas[0] >= 0.5,
      }),
    initialCounters: { step: 0 },
    advance: ({ step }) => ({ step: step + 1 }),
    scalars: adamScalars,
  };
}

const adam = algorithm("Adam", {});
const adamw = algorithm("AdamW", { weightDecay: 1e-2, decoupledWeightDecay: true }, { decoupledWeightDecay: true });

/**
 * Adam, with AMSGrad by the option `amsgrad`.
 *
 *     g = grad (+ weightDecay * p)          m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
 *     p -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps)          amsgrad: the largest v so far instead of v
 *
 * The numbers are those of torch.optim.Adam (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * Sources: Kingma & Ba (2015); Reddi, Kale & Kumar, "On the Convergence of Adam and Beyond" (2018).
 * optax takes the maximum after the bias correction, Keras adds eps to the uncorrected sqrt(v).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Adam } from "@opt/adam-amsgrad";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Adam([w], { amsgrad: true });
 * w.mul(w).sum().backward();
 * optimizer.step();
 */
export class Adam extends Optimizer<AdamOptions> {
  protected override define(): Algorithm<AdamOptions> {
    return adam;
  }
}

/**
 * AdamW: Adam with decoupled weight decay, p *= 1 - lr * weightDecay before the update.
 * Source: Loshchilov & Hutter, "Decoupled Weight Decay Regularization" (2019), as torch.optim.AdamW.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * const optimizer = new AdamW(model.namedParameters(), { lr: 3e-4, weightDecay: 0.1 });
 */
export class AdamW extends Optimizer<AdamOptions> {
  protected override define(): Algorithm<AdamOptions> {
    return adamw;
  }
}
