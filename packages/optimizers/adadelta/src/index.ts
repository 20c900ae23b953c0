/** Adadelta: options, rule, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  check,
  checkNotNegative,
  defineRule,
  div,
  fma,
  mul,
  Optimizer,
  type Rule,
  sqrt,
} from "@opt/core";

export interface AdadeltaOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1. */
  lr: number;
  /** Decay rate of both running averages, in [0, 1]. Default 0.9. */
  rho: number;
  /** Added below both roots, >= 0. Default 1e-6. */
  eps: number;
  /** Weight decay, added to the gradient, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** The update of one element in PyTorch's order of operations: without weight decay, and with it. */
export const adadeltaRules: readonly Rule[] = /* @__PURE__ */ [false, true].map((decays) =>
  defineRule({
    name: decays ? "adadeltaL2" : "adadelta",
    buffers: ["param", "grad", "squareAvg", "accDelta"],
    nonNegative: ["squareAvg", "accDelta"],
    scalars: [...(decays ? (["decay"] as const) : []), "rho", "oneMinusRho", "eps", "negLr"],
    update({ param, grad, squareAvg, accDelta }, { decay, rho, oneMinusRho, eps, negLr }) {
      const g = decays ? fma(decay, param, grad) : grad;
      const squares = fma(mul(oneMinusRho, g), g, mul(squareAvg, rho));
      const delta = mul(div(sqrt(add(accDelta, eps)), sqrt(add(squares, eps))), g);
      return {
        param: fma(negLr, delta, param),
        squareAvg: squares,
        accDelta: fma(mul(oneMinusRho, delta), delta, mul(accDelta, rho)),
      };
    },
  }),
);

const adadelta: Algorithm<AdadeltaOptions> = {
  name: "Adadelta",
  defaults: { lr: 1, rho: 0.9, eps: 1e-6, weightDecay: 0, maximize: false },
  validate({ rho, eps, weightDecay }) {
    checkNotNegative("Adadelta", "eps", eps);
    checkNotNegative("Adadelta", "weightDecay", weightDecay);
    checkNotNegative("Adadelta", "rho", rho);
    check(rho <= 1, "BAD_ARGUMENT", "Adadelta", () => `rho must be in [0, 1], got ${rho}.`, "The default is 0.9.");
  },
  rule: ({ weightDecay }) => adadeltaRules[weightDecay === 0 ? 0 : 1]!,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, rho, eps, weightDecay }, _counters, { sub, neg }) => ({
    decay: weightDecay,
    rho,
    oneMinusRho: sub(1, rho),
    eps,
    negLr: neg(lr),
  }),
};

/**
 * Adadelta: the gradient in units of the last updates. Running averages of both squares give the step its size.
 *
 *     g = grad (+ weightDecay * p)          v = rho v + (1 - rho) g^2
 *     d = sqrt(u + eps) / sqrt(v + eps) * g          u = rho u + (1 - rho) d^2          p -= lr * d
 *
 * The numbers are those of torch.optim.Adadelta (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Adadelta } from "@opt/adadelta";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Adadelta([w], { rho: 0.95 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Adadelta extends Optimizer<AdadeltaOptions> {
  protected override define(): Algorithm<AdadeltaOptions> {
    return adadelta;
  }
}
