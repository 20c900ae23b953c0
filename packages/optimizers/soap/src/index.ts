/** SOAP: options, rules, scalars and class. */
import {
  type Algorithm,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  checkValue,
  defineRule,
  fma,
  mul,
  type Rule,
  StagedOptimizer,
  type Stages,
} from "@opt/core";
import { phaseOf, preconditioned, stageRules, stateShapes } from "./eigenbasis";

export interface SOAPOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 3e-3. */
  lr: number;
  /** Decay rates of the running averages of the gradient and its square, in [0, 1). Default [0.95, 0.95]. */
  betas: readonly [number, number];
  /** Decay rate of the preconditioners, in [0, 1), null for betas[1]. Default null. */
  shampooBeta: number | null;
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Decoupled weight decay, >= 0. Default 0.01. */
  weightDecay: number;
  /** Steps from one refresh of the eigenbases to the next, a whole number from 1 on. Default 10. */
  preconditionFrequency: number;
  /** Longer sides have no preconditioner, as those of embeddings. Default 10000. */
  maxPreconditionerDim: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const BUFFERS = ["param", "grad", "direction"] as const;

const gradientRule = /* @__PURE__ */ defineRule({
  name: "soapGradient",
  buffers: BUFFERS,
  scalars: [],
  update: ({ grad }) => ({ direction: grad }),
});

/** The step along Adam's direction of the eigenbasis, and the decay after it. */
const soapRule = /* @__PURE__ */ defineRule({
  name: "soap",
  buffers: BUFFERS,
  scalars: ["negStepSize", "keep"],
  update: ({ param, direction }, { negStepSize, keep }) => ({ param: mul(fma(negStepSize, direction, param), keep) }),
});

/** Every rule, for kernel builds and tests. */
export const soapRules: readonly Rule[] = [gradientRule, ...stageRules, soapRule];

const DEFAULT_BETAS = [0.95, 0.95] as const;
const WHERE = "SOAP";

const soap: Algorithm<SOAPOptions> = {
  name: WHERE,
  isDecoupled: true,
  defaults: {
    lr: 3e-3,
    betas: DEFAULT_BETAS,
    shampooBeta: null,
    eps: 1e-8,
    weightDecay: 0.01,
    preconditionFrequency: 10,
    maxPreconditionerDim: 10000,
    maximize: false,
  },
  validate({ betas, shampooBeta, eps, weightDecay, preconditionFrequency, maxPreconditionerDim }) {
    checkBetas(WHERE, betas, DEFAULT_BETAS);
    const isRate = shampooBeta === null || (typeof shampooBeta === "number" && shampooBeta >= 0 && shampooBeta < 1);
    checkValue(isRate, WHERE, "shampooBeta", "in [0, 1), or null for betas[1]", shampooBeta, "The default is null.");
    checkNotNegative(WHERE, "eps", eps);
    checkNotNegative(WHERE, "weightDecay", weightDecay);
    const counts = { preconditionFrequency, maxPreconditionerDim };
    for (const [name, count] of Object.entries(counts)) {
      const isCount = Number.isSafeInteger(count) && count > 0;
      checkValue(isCount, WHERE, name, "a whole number from 1 on", count, "Leave it out for the default.");
    }
  },
  rule: () => soapRule,
  stageState: stateShapes,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  /** The first step makes the eigenbases and nothing else: Adam counts from the second on. */
  scalars({ lr, betas: [beta1, beta2], shampooBeta, eps, weightDecay }, { step }, arithmetic) {
    const { div, less, mul, neg, pow, sqrt, sub, where } = arithmetic;
    const isFirst = less(step, 2);
    const count = sub(step, 1);
    const correction = div(sqrt(sub(1, pow(beta2, count))), sub(1, pow(beta1, count)));
    return {
      beta1,
      oneMinusBeta1: sub(1, beta1),
      beta2,
      oneMinusBeta2: sub(1, beta2),
      eps,
      weight: sub(1, shampooBeta ?? beta2),
      negStepSize: where(isFirst, 0, neg(mul(lr, correction))),
      keep: where(isFirst, 1, sub(1, mul(lr, weightDecay))),
    };
  },
};

const stages: Stages<SOAPOptions> = {
  rule: () => gradientRule,
  transform: preconditioned,
  transformedBy: ["maxPreconditionerDim"],
  phase: phaseOf,
};

/**
 * SOAP: Adam in the eigenbasis of Shampoo's preconditioners, which are refreshed now and then.
 *
 *     L = lerp(L, G G^T, 1 - shampooBeta)          R = lerp(R, G^T G, 1 - shampooBeta)
 *     g = Ql^T G Qr          m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
 *     p -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * Ql (m / (sqrt(v) + eps)) Qr^T          p -= lr * weightDecay * p
 *     every `preconditionFrequency` steps: Ql, Qr = the q of qr(L Ql), qr(R Qr), columns by falling eigenvalue; m turns with them
 *
 * Tensors of more dimensions have a preconditioner for each, vectors and scalars none: they have Adam's step. The first step makes the
 * eigenbases from its gradient and leaves the parameter alone, as in the authors' program, whose numbers these are.
 * State of a matrix [m, n]: 2 m n + 2 m^2 + 2 n^2 numbers, the squares on one rank where ranks divide the matrix.
 * Source: Vyas et al., "SOAP: Improving and Stabilizing Shampoo using Adam" (2024).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; UNSUPPORTED for `stateDType`; BAD_DTYPE for complex parameters; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { SOAP } from "@opt/soap";
 * const w = parameter([[1, 2], [3, 4]]);
 * const optimizer = new SOAP([w], { lr: 0.01 });
 * for (let step = 0; step < 2; step++) {
 *   optimizer.zeroGrad();
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * }
 */
export class SOAP extends StagedOptimizer<SOAPOptions> {
  protected override define(): Algorithm<SOAPOptions> {
    return soap;
  }

  protected override stages(): Stages<SOAPOptions> {
    return stages;
  }
}
