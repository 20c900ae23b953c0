import { type Algorithm, checkBoolean, checkNotNegative, OptError, Optimizer } from "@opt/core";
import type { SGDOptions } from "./options";
import { sgdRule } from "./rule";
import { advanceSGD, countedSGD, sgdScalars } from "./scalars";

const sgd: Algorithm<SGDOptions> = {
  name: "SGD",
  defaults: { lr: 1e-3, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false, maximize: false },
  validate(options) {
    for (const name of ["momentum", "dampening", "weightDecay"] as const) checkNotNegative("SGD", name, options[name]);
    checkBoolean("SGD", "nesterov", options.nesterov);
    const { nesterov, momentum, dampening } = options;
    if (!nesterov || (momentum > 0 && dampening === 0)) return;
    throw new OptError(
      "BAD_ARGUMENT",
      "SGD",
      `nesterov needs a momentum above 0 and no dampening, got momentum ${momentum} and dampening ${dampening}.`,
      "Pass momentum: 0.9, or leave nesterov out.",
    );
  },
  rule: ({ momentum, weightDecay, nesterov }) =>
    sgdRule({
      momentum: momentum === 0 ? "none" : nesterov ? "nesterov" : "plain",
      decay: weightDecay !== 0,
    }),
  initialCounters: { step: 0 },
  advance: advanceSGD,
  counted: countedSGD,
  scalars: sgdScalars,
};

/**
 * Stochastic gradient descent, with momentum by the option `momentum`: what Paddle and MindSpore call Momentum.
 *
 *     g = grad (+ weightDecay * p)          m = momentum * m + (1 - dampening) g          (the first time m = g)
 *     p -= lr * g          with momentum: p -= lr * m          nesterov: p -= lr * (g + momentum * m)
 *
 * The numbers are those of torch.optim.SGD (PyTorch 2.13), bit for bit in float32.
 * Sources: Polyak (1964); Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { SGD } from "@opt/sgd";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new SGD([w], { lr: 0.1, momentum: 0.9 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class SGD extends Optimizer<SGDOptions> {
  protected override define(): Algorithm<SGDOptions> {
    return sgd;
  }
}
