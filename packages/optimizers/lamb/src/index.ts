/** Lamb: options, rules, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  defineRule,
  div,
  type Expression,
  fma,
  less,
  mul,
  norms,
  type Rule,
  StagedOptimizer,
  type Stages,
  sqrt,
  sub,
  where,
} from "@opt/core";

export interface LambOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-6. */
  eps: number;
  /** Weight decay, added to the direction, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const BUFFERS = ["param", "grad", "expAvg", "expAvgSq", "direction"] as const;
const AVERAGES = ["oneMinusBeta1", "beta2", "oneMinusBeta2"] as const;

type NamedExpressions<Name extends string> = Readonly<Record<Name, Expression>>;

/** The running averages after this gradient. */
function averages(
  { grad, expAvg, expAvgSq }: NamedExpressions<"grad" | "expAvg" | "expAvgSq">,
  { oneMinusBeta1, beta2, oneMinusBeta2 }: NamedExpressions<(typeof AVERAGES)[number]>,
) {
  return {
    expAvg: fma(oneMinusBeta1, sub(grad, expAvg), expAvg),
    expAvgSq: fma(mul(oneMinusBeta2, grad), grad, mul(expAvgSq, beta2)),
  };
}

/** The direction of AdamW, whose length the step does not keep. */
const lambDirectionRule = /* @__PURE__ */ defineRule({
  name: "lambDirection",
  buffers: BUFFERS,
  nonNegative: ["expAvgSq"],
  scalars: [...AVERAGES, "biasCorrection1", "biasCorrection2Sqrt", "eps", "weightDecay"],
  update({ param, ...buffers }, scalars) {
    const { expAvg, expAvgSq } = averages(buffers, scalars);
    const denom = add(div(sqrt(expAvgSq), scalars.biasCorrection2Sqrt), scalars.eps);
    return { direction: fma(scalars.weightDecay, param, div(div(expAvg, scalars.biasCorrection1), denom)) };
  },
});

/** The step along the direction, as long as lr times the parameter. */
const lambRule = /* @__PURE__ */ defineRule({
  name: "lamb",
  buffers: BUFFERS,
  nonNegative: ["expAvgSq"],
  scalars: [...AVERAGES, "negLr", "paramNorm", "directionNorm"],
  update({ param, direction, ...buffers }, { negLr, paramNorm, directionNorm, ...scalars }) {
    const ratio = where(less(0, directionNorm), div(paramNorm, directionNorm), 1);
    const trust = where(less(0, paramNorm), ratio, 1);
    return { param: add(param, mul(negLr, mul(trust, direction))), ...averages(buffers, scalars) };
  },
});

/** Every rule, for kernel builds and tests. */
export const lambRules: readonly Rule[] = [lambDirectionRule, lambRule];

const DEFAULT_BETAS = [0.9, 0.999] as const;

const lamb: Algorithm<LambOptions> = {
  name: "Lamb",
  defaults: { lr: 1e-3, betas: DEFAULT_BETAS, eps: 1e-6, weightDecay: 0, maximize: false },
  validate({ betas, eps, weightDecay }) {
    checkBetas("Lamb", betas, DEFAULT_BETAS);
    checkNotNegative("Lamb", "eps", eps);
    checkNotNegative("Lamb", "weightDecay", weightDecay);
  },
  rule: () => lambRule,
  stageScalars: ["paramNorm", "directionNorm"],
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, betas: [beta1, beta2], eps, weightDecay }, { step }, { sub, neg, pow, sqrt }) => ({
    oneMinusBeta1: sub(1, beta1),
    beta2,
    oneMinusBeta2: sub(1, beta2),
    biasCorrection1: sub(1, pow(beta1, step)),
    biasCorrection2Sqrt: sqrt(sub(1, pow(beta2, step))),
    eps,
    weightDecay,
    negLr: neg(lr),
  }),
};

const stages: Stages<LambOptions> = {
  rule: () => lambDirectionRule,
  transform: (directions, { params }) => ({
    directions,
    scalars: { paramNorm: norms(params), directionNorm: norms(directions) },
  }),
  transformedBy: [],
};

/**
 * LAMB, for large batches: Adam whose steps are as long as `lr` times the norm of each parameter.
 *
 *     u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weightDecay * p          p -= lr * |p| / |u| * u
 *
 * Where |p| or |u| is 0 their ratio is 1. The formula is Paddle's and optax.lamb's.
 * Source: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes" (2019).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; BAD_DTYPE for complex parameters; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Lamb } from "@opt/lamb";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new Lamb([w], { lr: 0.01, weightDecay: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Lamb extends StagedOptimizer<LambOptions> {
  protected override define(): Algorithm<LambOptions> {
    return lamb;
  }

  protected override stages(): Stages<LambOptions> {
    return stages;
  }
}
