/** Adagrad: options, rule, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkNotNegative,
  defineRule,
  div,
  fma,
  mul,
  Optimizer,
  type Rule,
  sqrt,
} from "@opt/core";

export interface AdagradOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-2. */
  lr: number;
  /** Lowers the learning rate of step t to lr / (1 + (t - 1) lrDecay); >= 0. Default 0. */
  lrDecay: number;
  /** Weight decay, added to the gradient, >= 0. Default 0. */
  weightDecay: number;
  /** The sum of squares before the first step, >= 0. Default 0. */
  initialAccumulatorValue: number;
  /** Added to the denominator, >= 0. Default 1e-10. */
  eps: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** The update of one element in PyTorch's order of operations: without weight decay, and with it. */
export const adagradRules: readonly Rule[] = /* @__PURE__ */ [false, true].map((decays) =>
  defineRule({
    name: decays ? "adagradL2" : "adagrad",
    buffers: ["param", "grad", "sum"],
    nonNegative: ["sum"],
    scalars: [...(decays ? (["decay"] as const) : []), "negLr", "eps"],
    update({ param, grad, sum }, { decay, negLr, eps }) {
      const g = decays ? fma(decay, param, grad) : grad;
      const squares = fma(g, g, sum);
      return { param: add(param, div(mul(negLr, g), add(sqrt(squares), eps))), sum: squares };
    },
  }),
);

const adagrad: Algorithm<AdagradOptions> = {
  name: "Adagrad",
  defaults: { lr: 1e-2, lrDecay: 0, weightDecay: 0, initialAccumulatorValue: 0, eps: 1e-10, maximize: false },
  validate(options) {
    for (const name of ["lrDecay", "weightDecay", "initialAccumulatorValue", "eps"] as const) {
      checkNotNegative("Adagrad", name, options[name]);
    }
  },
  rule: ({ weightDecay }) => adagradRules[weightDecay === 0 ? 0 : 1]!,
  initialState: ({ initialAccumulatorValue }) => ({ sum: initialAccumulatorValue }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, lrDecay, weightDecay, eps }, { step }, { add, mul, div, neg }) => ({
    decay: weightDecay,
    negLr: neg(div(lr, add(1, mul(step - 1, lrDecay)))),
    eps,
  }),
};

/**
 * Adagrad: the gradient divided by the root of the sum of its squares so far.
 *
 *     g = grad (+ weightDecay * p)          sum += g^2          p -= lr / (1 + (t - 1) lrDecay) * g / (sqrt(sum) + eps)
 *
 * The numbers are those of torch.optim.Adagrad (PyTorch 2.13), bit for bit in float32 but for PyTorch's vectorised square root.
 * `initialAccumulatorValue` may differ from group to group; PyTorch takes the constructor's for all groups.
 * Source: Duchi, Hazan & Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization" (2011).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Adagrad } from "@opt/adagrad";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Adagrad([w], { lr: 0.1, lrDecay: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Adagrad extends Optimizer<AdagradOptions> {
  protected override define(): Algorithm<AdagradOptions> {
    return adagrad;
  }
}
