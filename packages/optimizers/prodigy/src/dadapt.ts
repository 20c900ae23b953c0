/** D-Adaptation of AdamW: options, rules, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  checkValue,
  defineRule,
  div,
  empty,
  mul,
  neg,
  type Rule,
  StagedOptimizer,
  type Stages,
  sqrt,
  sub,
} from "@opt/core";
import { BUFFERS, ESTIMATE, estimatedBy, gradientRule, sumShapes, together } from "./distance";

export interface DAdaptAdamWOptions extends BaseOptions {
  /** Factor of the learning rate that is found, >= 0: what a schedule changes. Default 1. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, above 0. Default 1e-8. */
  eps: number;
  /** Decoupled weight decay, times d, >= 0. Default 0. */
  weightDecay: number;
  /** The first d, above 0: less than the distance to any solution. Default 1e-6. */
  d0: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** The gradient times the sum of gradients, as long as Adam's denominator makes it. */
const weightedRule = /* @__PURE__ */ defineRule({
  name: "dadaptWeighted",
  buffers: ["weighted", "gradient", "sum", "square"],
  scalars: ["eps"],
  update: ({ gradient, sum, square }, { eps }) => ({ weighted: mul(gradient, div(sum, add(sqrt(square), eps))) }),
});

const estimateRule = /* @__PURE__ */ defineRule({
  name: "dadaptEstimate",
  buffers: ESTIMATE,
  scalars: ["beta3", "oneMinusBeta3", "rate"],
  update({ numerator, d, inner }, { beta3, oneMinusBeta3, rate }) {
    const weight = mul(oneMinusBeta3, mul(d, rate));
    const next = add(mul(beta3, numerator), mul(weight, inner));
    return { keep: add(beta3, 0), weight, next, share: div(next, oneMinusBeta3) };
  },
});

/** Adam's step in optax's order of operations. */
const dadaptRule = /* @__PURE__ */ defineRule({
  name: "dadapt",
  buffers: BUFFERS,
  nonNegative: ["expAvgSq"],
  scalars: ["beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", "eps", "weightDecay", "rate", "d"],
  update({ param, expAvg, expAvgSq, direction }, h) {
    const stepSize = mul(h.d, h.rate);
    const nextAvg = add(mul(h.beta1, expAvg), mul(mul(h.oneMinusBeta1, stepSize), direction));
    const nextSq = add(mul(h.beta2, expAvgSq), mul(mul(h.oneMinusBeta2, direction), direction));
    const decay = mul(mul(neg(h.weightDecay), stepSize), param);
    const step = div(nextAvg, add(sqrt(nextSq), h.eps));
    return { param: add(param, sub(decay, step)), expAvg: nextAvg, expAvgSq: nextSq };
  },
});

/** Every rule of D-Adaptation. */
export const dadaptRules: readonly Rule[] = [weightedRule, estimateRule, dadaptRule];

const DEFAULT_BETAS = [0.9, 0.999] as const;
const WHERE = "DAdaptAdamW";

const dadapt: Algorithm<DAdaptAdamWOptions> = {
  name: WHERE,
  findsRate: true,
  defaults: { lr: 1, betas: DEFAULT_BETAS, eps: 1e-8, weightDecay: 0, d0: 1e-6, maximize: false },
  validate({ betas, eps, weightDecay, d0 }) {
    checkBetas(WHERE, betas, DEFAULT_BETAS);
    checkNotNegative(WHERE, "weightDecay", weightDecay);
    for (const [name, value] of Object.entries({ eps, d0 })) {
      const isAbove = Number.isFinite(value) && value > 0;
      checkValue(isAbove, WHERE, name, "a number above 0", value, "Leave it out for the default.");
    }
  },
  rule: () => dadaptRule,
  // The average of squares is the rule's own: stages need the whole of it.
  stageState: (shape) => ({ exp_avg_sq: shape, ...sumShapes(shape) }),
  stageScalars: ["d", "nextD"],
  initialState: ({ d0 }) => ({ d: d0 }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars({ lr, betas: [beta1, beta2], eps, weightDecay }, { step }, { div, mul, pow, sqrt, sub }) {
    const correction = div(sqrt(sub(1, pow(beta2, step))), sub(1, pow(beta1, step)));
    return {
      beta1,
      oneMinusBeta1: sub(1, beta1),
      beta2,
      oneMinusBeta2: sub(1, beta2),
      beta3: sqrt(beta2),
      oneMinusBeta3: sub(1, sqrt(beta2)),
      eps,
      weightDecay,
      rate: mul(lr, correction),
    };
  },
};

const stages: Stages<DAdaptAdamWOptions> = {
  rule: () => gradientRule,
  transform(gradients, step) {
    const products = gradients.map((gradient) =>
      empty(gradient.shape, { dtype: gradient.dtype, device: gradient.device }),
    );
    step.launch(
      weightedRule,
      products.map((product, i) => {
        const state = step.states[i]!;
        return [product, gradients[i]!, state.get("grad_sum")!, state.get("exp_avg_sq")!];
      }),
    );
    const inners = products.map((product) => product.sum());
    return estimatedBy(gradients, step, estimateRule, inners);
  },
  transformedBy: [],
  together,
};

/**
 * D-Adaptation: AdamW that finds its learning rate d, which grows with the distance from the start to a solution. Prodigy finds it faster.
 *
 *     c = d * lr * sqrt(1 - beta2^t) / (1 - beta1^t)          a = sqrt(beta2)
 *     r = a r + (1 - a) c <grad, s / (sqrt(v) + eps)>          s = a s + (1 - a) c grad
 *     m = beta1 m + (1 - beta1) c grad          v = beta2 v + (1 - beta2) grad^2
 *     p -= m / (sqrt(v) + eps) + c * weightDecay * p          d = max(d, sum of all r / ((1 - a) sum of all |s|))
 *
 * The sums are over all parameters of the optimizer that have a gradient: d is one number for all of them, and each one's state has it.
 * The numbers are those of optax.contrib.dadapt_adamw. Source: Defazio and Mishchenko, "Learning-Rate-Free Learning by D-Adaptation" (2023).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; UNSUPPORTED for `stateDType`; BAD_DTYPE for complex parameters;
 * DEVICE_MISMATCH in a step of parameters on two devices; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { DAdaptAdamW } from "@opt/prodigy";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new DAdaptAdamW([w]);
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class DAdaptAdamW extends StagedOptimizer<DAdaptAdamWOptions> {
  protected override define(): Algorithm<DAdaptAdamWOptions> {
    return dadapt;
  }

  protected override stages(): Stages<DAdaptAdamWOptions> {
    return stages;
  }
}
