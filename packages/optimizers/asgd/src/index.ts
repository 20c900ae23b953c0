/** ASGD: options, rule, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkNotNegative,
  defineRule,
  fma,
  less,
  mul,
  Optimizer,
  type Rule,
  sub,
  where,
} from "@opt/core";

export interface ASGDOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-2. */
  lr: number;
  /** Decay of the parameters, and of the learning rate, >= 0. Default 1e-4. */
  lambd: number;
  /** Power by which the learning rate falls, >= 0. Default 0.75. */
  alpha: number;
  /** The step after which averages begin, >= 0. Default 1e6. */
  t0: number;
  /** Weight decay, added to the gradient, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** The update of one element in PyTorch's order of operations: without weight decay, and with it. */
export const asgdRules: readonly Rule[] = /* @__PURE__ */ [false, true].map((decays) =>
  defineRule({
    name: decays ? "asgdL2" : "asgd",
    buffers: ["param", "grad", "ax"],
    scalars: [...(decays ? (["weightDecay"] as const) : []), "decay", "negEta", "mu"],
    update({ param, grad, ax }, { weightDecay, decay, negEta, mu }) {
      const g = decays ? fma(weightDecay, param, grad) : grad;
      const p = fma(negEta, g, mul(param, decay));
      return { param: p, ax: where(less(mu, 1), add(ax, mul(sub(p, ax), mu)), p) };
    },
  }),
);

const asgd: Algorithm<ASGDOptions> = {
  name: "ASGD",
  defaults: { lr: 1e-2, lambd: 1e-4, alpha: 0.75, t0: 1e6, weightDecay: 0, maximize: false },
  validate(options) {
    for (const name of ["lambd", "alpha", "t0", "weightDecay"] as const) checkNotNegative("ASGD", name, options[name]);
  },
  rule: ({ weightDecay }) => asgdRules[weightDecay === 0 ? 0 : 1]!,
  // eta and mu are those of the next step, in float32 as PyTorch's. The first eta is lr.
  initialCounters: { step: 0, eta: 0, mu: 1 },
  advance({ step }, { lr, lambd, alpha, t0 }, { add, sub, mul, div, pow, maximum, fround }) {
    const eta = div(lr, pow(add(1, mul(mul(lambd, lr), step + 1)), alpha));
    return { step: step + 1, eta: fround(eta), mu: fround(div(1, maximum(sub(step + 1, t0), 1))) };
  },
  scalars({ lr, lambd, weightDecay }, _counters, { sub, mul, neg, fround }, before) {
    const eta = before.step === 0 ? fround(lr) : before.eta!;
    return { weightDecay, decay: sub(1, mul(lambd, eta)), negEta: neg(eta), mu: before.mu! };
  },
};

/**
 * ASGD: stochastic gradient descent by a falling learning rate. The state `ax` is the average of the parameters since step `t0`.
 *
 *     g = grad (+ weightDecay * p)          p = (1 - lambd eta_t) p - eta_t g          ax += mu_t (p - ax)
 *     eta_t = lr / (1 + lambd lr (t - 1))^alpha          mu_t = 1 / max(1, t - 1 - t0)
 *
 * The numbers are those of torch.optim.ASGD (PyTorch 2.13), bit for bit in float32. As there, eta and mu are rounded to float32, and
 * computed one step ahead: a new `lr` takes effect one step later.
 * Source: Polyak & Juditsky, "Acceleration of Stochastic Approximation by Averaging" (1992).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { ASGD } from "@opt/asgd";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new ASGD([w], { lr: 0.1, t0: 100 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class ASGD extends Optimizer<ASGDOptions> {
  protected override define(): Algorithm<ASGDOptions> {
    return asgd;
  }
}
