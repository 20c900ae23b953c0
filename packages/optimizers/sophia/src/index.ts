/** Sophia: options, the update of one element in optax's order of operations, its numbers of a step, and the class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  checkOptions,
  checkValue,
  defineRule,
  div,
  maximum,
  minimum,
  mul,
  neg,
  Optimizer,
  type Rule,
} from "@opt/core";
import { renewState } from "@opt/core/backend";

export { type HutchinsonOptions, hutchinson } from "./hutchinson";

export interface SophiaOptions extends BaseOptions {
  /** Learning rate, >= 0: the length of the longest step of an element. Default 1e-4. */
  lr: number;
  /** Decay rates of the averages of the gradient and of the Hessian's diagonal, in [0, 1). Default [0.965, 0.99]. */
  betas: readonly [number, number];
  /** The least denominator, above 0. Default 1e-8. */
  eps: number;
  /** Decoupled weight decay, >= 0. Default 1e-4. */
  weightDecay: number;
  /** Factor of the Hessian's diagonal, >= 0: larger ones clip fewer elements. Default 0.01. */
  gamma: number;
  /** Limit of each element of the direction, above 0, or null for none. Default 1. */
  clipThreshold: number | null;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** What the gradients are that `updateHessian` finds. */
export interface HessianEstimate {
  /**
   * The number of examples, above 0, whose mean loss on labels drawn from the model's own predictions has these gradients: the estimate is
   * batchSize * grad^2, that of Gauss, Newton and Bartlett. Default null: the gradients are estimates, as those of `hutchinson`.
   */
  readonly batchSize?: number | null;
}

const sophiaRule = /* @__PURE__ */ defineRule({
  name: "sophia",
  buffers: ["param", "grad", "expAvg", "hessian"],
  scalars: ["beta1", "oneMinusBeta1", "biasCorrection1", "gamma", "eps", "limit", "decay", "negLr"],
  update({ param, grad, expAvg, hessian }, h) {
    const m = add(mul(h.oneMinusBeta1, grad), mul(h.beta1, expAvg));
    const ratio = div(div(m, h.biasCorrection1), maximum(mul(h.gamma, hessian), h.eps));
    const clipped = minimum(maximum(ratio, neg(h.limit)), h.limit);
    return { param: add(param, mul(h.negLr, add(clipped, mul(h.decay, param)))), expAvg: m };
  },
});

const averageScalars = ["beta2", "estimateWeight"] as const;

/** Averages of estimates, and of what Gauss, Newton and Bartlett estimate by gradients. */
const averageRules = {
  given: /* @__PURE__ */ defineRule({
    name: "sophiaHessian",
    buffers: ["grad", "hessian"],
    scalars: averageScalars,
    update: ({ grad, hessian }, h) => ({ hessian: add(mul(h.estimateWeight, grad), mul(h.beta2, hessian)) }),
  }),
  ofGradients: /* @__PURE__ */ defineRule({
    name: "sophiaGaussNewton",
    buffers: ["grad", "hessian"],
    scalars: [...averageScalars, "batchSize"],
    update({ grad, hessian }, h) {
      const estimate = mul(h.batchSize, mul(grad, grad));
      return { hessian: add(mul(h.estimateWeight, estimate), mul(h.beta2, hessian)) };
    },
  }),
} as const;

/** Every rule, for kernel builds and tests. */
export const sophiaRules: readonly Rule[] = [sophiaRule, averageRules.given, averageRules.ofGradients];

const DEFAULT_BETAS = [0.965, 0.99] as const;
const WHERE = "Sophia";

const sophia: Algorithm<SophiaOptions> = {
  name: WHERE,
  renewsState: true,
  isDecoupled: true,
  defaults: {
    lr: 1e-4,
    betas: DEFAULT_BETAS,
    eps: 1e-8,
    weightDecay: 1e-4,
    gamma: 0.01,
    clipThreshold: 1,
    maximize: false,
  },
  validate({ betas, eps, weightDecay, gamma, clipThreshold }) {
    checkBetas(WHERE, betas, DEFAULT_BETAS);
    checkValue(Number.isFinite(eps) && eps > 0, WHERE, "eps", "a number above 0", eps, "The default is 1e-8.");
    checkNotNegative(WHERE, "weightDecay", weightDecay);
    checkNotNegative(WHERE, "gamma", gamma);
    const isLimit = clipThreshold === null || (Number.isFinite(clipThreshold) && clipThreshold > 0);
    checkValue(isLimit, WHERE, "clipThreshold", "a number above 0, or null", clipThreshold, "The default is 1.");
  },
  rule: () => sophiaRule,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars({ lr, betas: [beta1, beta2], eps, weightDecay, gamma, clipThreshold, maximize }, { step }, arithmetic) {
    const { neg, pow, sub } = arithmetic;
    return {
      beta1,
      oneMinusBeta1: sub(1, beta1),
      biasCorrection1: sub(1, pow(beta1, step)),
      gamma,
      eps,
      limit: clipThreshold ?? Number.POSITIVE_INFINITY,
      decay: weightDecay,
      negLr: neg(lr),
      beta2,
      estimateWeight: maximize ? sub(beta2, 1) : sub(1, beta2),
    };
  },
};

/**
 * Sophia: a momentum divided by an average of the Hessian's diagonal, and clipped.
 *
 *     m = beta1 m + (1 - beta1) grad          p -= lr * (clip(m / (1 - beta1^t) / max(gamma * h, eps)) + weightDecay * p)
 *     now and then, by `updateHessian`:          h = beta2 h + (1 - beta2) * estimate
 *
 * Until there is an estimate h is 0, and each element steps by lr against the sign of m. Estimates come as gradients: from `hutchinson`,
 * or from labels that you draw from the model's predictions. So they pass through what gradients pass through, as `DataParallel.sync()`.
 * The numbers are those of optax.contrib.sophia, which estimates every 10 steps, after the step and from the parameters before it.
 * Source: Liu et al., "Sophia: A Scalable Stochastic Second-order Optimizer for Language Model Pre-training" (2023).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { Generator, parameter } from "@opt/core";
 * import { hutchinson, Sophia } from "@opt/sophia";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Sophia([w], { lr: 0.01 });
 * const generator = new Generator(0);
 * const loss = () => w.pow(4).sum();
 * for (let step = 0; step < 100; step++) {
 *   if (step % 10 === 0) {
 *     hutchinson(loss(), [w], { generator });
 *     optimizer.updateHessian();
 *     optimizer.zeroGrad();
 *   }
 *   loss().backward();
 *   optimizer.step();
 *   optimizer.zeroGrad();
 * }
 */
export class Sophia extends Optimizer<SophiaOptions> {
  protected override define(): Algorithm<SophiaOptions> {
    return sophia;
  }

  /**
   * Averages an estimate of the Hessian's diagonal, which each parameter has as its gradient: h = beta2 h + (1 - beta2) * estimate.
   * Parameters without a gradient keep theirs. Nothing steps and nothing is clipped; clear the gradients afterwards.
   *
   * @throws OptError BAD_ARGUMENT for a batch size that is not above 0; further as `step()`
   */
  updateHessian(options: HessianEstimate = {}): void {
    const where = `${WHERE}.updateHessian`;
    checkOptions(where, options, { batchSize: "any" });
    const { batchSize = null } = options;
    const isSize = batchSize === null || (Number.isFinite(batchSize) && batchSize > 0);
    checkValue(isSize, where, "batchSize", "a number above 0, or null", batchSize, "It is the number of examples.");
    if (batchSize === null) renewState(this, averageRules.given);
    else renewState(this, averageRules.ofGradients, { batchSize });
  }
}
