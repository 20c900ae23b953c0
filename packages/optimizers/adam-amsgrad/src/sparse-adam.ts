/** SparseAdam: Adam for row-sparse gradients. Options, rule, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  check,
  checkBetas,
  defineRule,
  div,
  mul,
  Optimizer,
  RowSparse,
  type Rule,
  show,
  sqrt,
  sub,
} from "@opt/core";

export interface SparseAdamOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, > 0. Default 1e-8. */
  eps: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
  /** Always true: a step reaches only the rows of the gradient. */
  lazyMode: boolean;
}

/** The update of one element of SparseAdam, in PyTorch's order of operations. */
export const sparseAdamRules: readonly Rule[] = [
  /* @__PURE__ */ defineRule({
    name: "sparseAdam",
    buffers: ["param", "grad", "expAvg", "expAvgSq"],
    nonNegative: ["expAvgSq"],
    scalars: ["oneMinusBeta1", "oneMinusBeta2", "eps", "negStepSize"],
    update({ param, grad, expAvg, expAvgSq }, { oneMinusBeta1, oneMinusBeta2, eps, negStepSize }) {
      const m = add(mul(sub(grad, expAvg), oneMinusBeta1), expAvg);
      const v = add(mul(sub(mul(grad, grad), expAvgSq), oneMinusBeta2), expAvgSq);
      return {
        param: add(param, mul(negStepSize, div(m, add(sqrt(v), eps)))),
        expAvg: m,
        expAvgSq: v,
      };
    },
  }),
];

const WHERE = "SparseAdam";

const sparseAdam: Algorithm<SparseAdamOptions> = {
  name: WHERE,
  defaults: { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, maximize: false, lazyMode: true },
  fixed: { lazyMode: true },
  validate({ betas, eps }) {
    checkBetas(WHERE, betas);
    check(
      typeof eps === "number" && eps > 0,
      "BAD_ARGUMENT",
      WHERE,
      () => `eps must be a number above 0, got ${show(eps)}.`,
      "The default is 1e-8.",
    );
  },
  checkGradient(name, gradient) {
    check(
      gradient instanceof RowSparse,
      "UNSUPPORTED",
      WHERE,
      () => `the gradient of ${name} must be row-sparse, got a dense one.`,
      "Use Adam, or make its layer with sparse: true.",
    );
  },
  rule: () => sparseAdamRules[0]!,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars({ lr, betas: [beta1, beta2], eps }, { step }, { sub, mul, div, neg, pow, sqrt }) {
    const correction = sqrt(sub(1, pow(beta2, step)));
    return {
      oneMinusBeta1: sub(1, beta1),
      oneMinusBeta2: sub(1, beta2),
      eps,
      negStepSize: neg(div(mul(lr, correction), sub(1, pow(beta1, step)))),
    };
  },
};

/**
 * SparseAdam: Adam whose step costs what the rows of the gradient cost. Other rows keep parameter and state.
 *
 *     m[i] += (1 - beta1) (g[i] - m[i])          v[i] += (1 - beta2) (g[i]^2 - v[i])          for each row i of the gradient
 *     p[i] -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m[i] / (sqrt(v[i]) + eps)
 *
 * t counts every step that has a gradient. The numbers are those of torch.optim.SparseAdam (PyTorch 2.13). `Adam` with `lazyMode` adds
 * eps to the corrected root instead.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; UNSUPPORTED in `step()` for a dense gradient; further as `Optimizer`
 * @example
 * import { gatherSparse, parameter, tensor } from "@opt/core";
 * import { SparseAdam } from "@opt/adam-amsgrad";
 * const table = parameter([[1, 2], [3, 4], [5, 6]]);
 * const optimizer = new SparseAdam([table], { lr: 0.01 });
 * gatherSparse(table, tensor([2, 0], { dtype: "i32" })).sum().backward();
 * optimizer.step(); // rows 0 and 2
 */
export class SparseAdam extends Optimizer<SparseAdamOptions> {
  protected override define(): Algorithm<SparseAdamOptions> {
    return sparseAdam;
  }
}
