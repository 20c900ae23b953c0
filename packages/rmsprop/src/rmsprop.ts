import { type Algorithm, check, checkBoolean, checkNotNegative, type GroupOptions, Optimizer } from "@opt/core";
import type { RMSpropOptions } from "./options";
import { rmspropRule } from "./rule";
import { rmspropScalars } from "./scalars";

const rmsprop: Algorithm<RMSpropOptions> = {
  name: "RMSprop",
  defaults: { lr: 1e-2, alpha: 0.99, eps: 1e-8, weightDecay: 0, momentum: 0, centered: false, maximize: false },
  validate(options) {
    for (const name of ["alpha", "eps", "weightDecay", "momentum"] as const) {
      checkNotNegative("RMSprop", name, options[name]);
    }
    checkBoolean("RMSprop", "centered", options.centered);
    const problem = () => "the variance of rounded averages may be negative, got centered with stateDType q8.";
    const isPacked = (options as GroupOptions).stateDType === "q8";
    check(!(options.centered && isPacked), "UNSUPPORTED", "RMSprop", problem, "Leave one of them out.");
  },
  rule: ({ alpha, weightDecay, momentum, centered }) =>
    rmspropRule({
      momentum: momentum > 0,
      centered: !centered ? "no" : 1 - alpha >= 0.5 ? "smallAlpha" : "yes",
      decay: weightDecay !== 0,
    }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: rmspropScalars,
};

/**
 * RMSprop: the gradient divided by its running root mean square, or `centered` by its running standard deviation.
 *
 *     g = grad (+ weightDecay * p)          v = alpha v + (1 - alpha) g^2          centered: a = alpha a + (1 - alpha) g
 *     d = g / (sqrt(v (- a^2)) + eps)          p -= lr * d          with momentum: m = momentum * m + d, p -= lr * m
 *
 * The numbers are those of torch.optim.RMSprop (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * Sources: Tieleman & Hinton (2012); Graves, "Generating Sequences With Recurrent Neural Networks" (2013). Keras and Paddle add eps to v.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { RMSprop } from "@opt/rmsprop";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new RMSprop([w], { lr: 0.01, momentum: 0.9, centered: true });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class RMSprop extends Optimizer<RMSpropOptions> {
  protected override define(): Algorithm<RMSpropOptions> {
    return rmsprop;
  }
}
