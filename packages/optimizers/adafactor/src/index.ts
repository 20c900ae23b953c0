/** Adafactor: options, rules, scalars and class. */
import {
  type Algorithm,
  type BaseOptions,
  check,
  checkNotNegative,
  defineRule,
  div,
  fma,
  maximum,
  mul,
  neg,
  type Rule,
  StagedOptimizer,
  type Stages,
  show,
  sqrt,
} from "@opt/core";
import { stageRules, stateShapes, varianceEstimates } from "./variance";

export interface AdafactorOptions extends BaseOptions {
  /** Learning rate, >= 0: the largest step relative to the size of a parameter. Default 1e-2. */
  lr: number;
  /** Power of the step by which the averages follow the squares, <= 0: step^beta2Decay. Default -0.8. */
  beta2Decay: number;
  /** Least root of a variance, null for the precision of the dtype; least size of a parameter. Both >= 0. Default [null, 1e-3]. */
  eps: readonly [number | null, number];
  /** Root mean square at which updates are clipped, >= 1. Default 1. */
  d: number;
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const BUFFERS = ["param", "grad", "direction"] as const;

/** What the variance is estimated from. */
const squareRule = /* @__PURE__ */ defineRule({
  name: "adafactorSquare",
  buffers: BUFFERS,
  scalars: [],
  update: ({ grad }) => ({ direction: mul(grad, grad) }),
});

/** The step in PyTorch's order of operations. Its direction is the estimate of the variance. */
const adafactorRule = /* @__PURE__ */ defineRule({
  name: "adafactor",
  buffers: BUFFERS,
  scalars: ["keep", "rho", "eps2", "d", "leastVariance", "rootSize", "paramNorm", "updateNorm"],
  update({ param, grad, direction }, { keep, rho, eps2, d, leastVariance, rootSize, paramNorm, updateNorm }) {
    const alpha = mul(maximum(eps2, div(paramNorm, rootSize)), rho);
    const denom = maximum(1, div(updateNorm, mul(rootSize, d)));
    const update = mul(div(1, sqrt(maximum(direction, leastVariance))), grad);
    return { param: fma(neg(div(alpha, denom)), update, mul(param, keep)) };
  },
});

/** Every rule, for kernel builds and tests. */
export const adafactorRules: readonly Rule[] = [squareRule, ...stageRules, adafactorRule];

const WHERE = "Adafactor";

const adafactor: Algorithm<AdafactorOptions> = {
  name: WHERE,
  isDecoupled: true,
  defaults: { lr: 1e-2, beta2Decay: -0.8, eps: [null, 1e-3], d: 1, weightDecay: 0, maximize: false },
  validate({ beta2Decay, eps, d, weightDecay }) {
    check(
      beta2Decay <= 0,
      "BAD_ARGUMENT",
      WHERE,
      () => `beta2Decay must be a number <= 0, got ${show(beta2Decay)}.`,
      "The default is -0.8.",
    );
    check(
      Array.isArray(eps) && eps.length === 2,
      "BAD_ARGUMENT",
      WHERE,
      () => `eps must be a pair, got ${show(eps)}.`,
      "The default is [null, 1e-3].",
    );
    if (eps[0] !== null) checkNotNegative(WHERE, "eps[0]", eps[0]);
    checkNotNegative(WHERE, "eps[1]", eps[1]);
    check(d >= 1, "BAD_ARGUMENT", WHERE, () => `d must be a number >= 1, got ${show(d)}.`, "The default is 1.");
    checkNotNegative(WHERE, "weightDecay", weightDecay);
  },
  rule: () => adafactorRule,
  stageState: stateShapes,
  stageScalars: ["leastVariance", "rootSize", "paramNorm", "updateNorm"],
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, beta2Decay, eps: [, eps2], d, weightDecay }, { step }, { sub, mul, div, minimum, pow, sqrt }) => ({
    weight: pow(step, beta2Decay),
    keep: sub(1, mul(lr, weightDecay)),
    rho: minimum(lr, div(1, sqrt(step))),
    eps2,
    d,
  }),
};

const stages: Stages<AdafactorOptions> = {
  rule: () => squareRule,
  transform: varianceEstimates,
  transformedBy: ["eps"],
};

/**
 * Adafactor: the variance of a matrix's gradients by its rows and columns alone, so that m + n numbers of state serve m * n elements.
 * Steps are relative to the size of the parameter.
 *
 *     r = lerp(r, mean of g^2 by row, t^beta2Decay)          c = lerp(c, mean of g^2 by column, t^beta2Decay)
 *     v = r c / max(mean(r), eps1)          other than matrices: v = lerp(v, g^2, t^beta2Decay)
 *     u = g / max(sqrt(v), eps1)          alpha = max(eps2, rms(p)) * min(lr, 1 / sqrt(t))
 *     p = p - lr * weightDecay * p - alpha * u / max(1, rms(u) / d)
 *
 * Tensors of more dimensions are matrices of their last two. The numbers are those of torch.optim.Adafactor (PyTorch 2.13), in
 * float32 up to roundings of its sums.
 * Source: Shazeer & Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost" (2018).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; UNSUPPORTED for `stateDType`; BAD_DTYPE for complex parameters; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Adafactor } from "@opt/adafactor";
 * const w = parameter([[1, 2], [3, 4]]);
 * const optimizer = new Adafactor([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Adafactor extends StagedOptimizer<AdafactorOptions> {
  protected override define(): Algorithm<AdafactorOptions> {
    return adafactor;
  }

  protected override stages(): Stages<AdafactorOptions> {
    return stages;
  }
}
