/** Shampoo: options, rules, scalars and class. */
import {
  type Algorithm,
  type BaseOptions,
  checkBoolean,
  checkNotNegative,
  checkOptions,
  checkValue,
  defineRule,
  fma,
  type Rule,
  StagedOptimizer,
  type Stages,
} from "@opt/core";
import { phaseOf, preconditioned, type ShampooGrafting, stageRules, stateShapes } from "./preconditioner";

export type { ShampooGrafting } from "./preconditioner";

export interface ShampooOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 0.01. */
  lr: number;
  /** Decay rates of the average of gradients, in [0, 1), and of the factor matrices, in (0, 1]: 1 for their sum. Default [0.9, 1]. */
  betas: readonly [number, number];
  /** Added to the eigenvalues of factor matrices, > 0. Default 1e-12. */
  eps: number;
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Decay rate of a sum of directions, in [0, 1). Default 0: no such sum. */
  momentum: number;
  /** Steps by the direction and the momentum after it. Default false. */
  nesterov: boolean;
  /** The method whose steps are as long. Default { kind: "adam" }. */
  grafting: ShampooGrafting;
  /** Parameters are cut into blocks with sides of at most so many elements, a whole number from 1 on. Default 1024. */
  blockSize: number;
  /** Steps from one computation of the inverse roots to the next, a whole number from 1 on. Default 10. */
  preconditionFrequency: number;
  /** The first step by Shampoo's direction, a whole number from 1 on; null for `preconditionFrequency`. Default null. */
  startStep: number | null;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

type Momentum = "none" | "heavyBall" | "nesterov";

const momentumOf = ({ momentum, nesterov }: ShampooOptions): Momentum =>
  momentum === 0 ? "none" : nesterov ? "nesterov" : "heavyBall";

const BUFFERS = ["param", "grad", "direction"] as const;
const MOMENTUM_BUFFERS = ["param", "grad", "momentumBuffer", "direction"] as const;

const gradientRule = /* @__PURE__ */ defineRule({
  name: "shampooGradient",
  buffers: BUFFERS,
  scalars: [],
  update: ({ grad }) => ({ direction: grad }),
});

const momentumGradientRule = /* @__PURE__ */ defineRule({
  name: "shampooMomentumGradient",
  buffers: MOMENTUM_BUFFERS,
  scalars: [],
  update: ({ grad }) => ({ direction: grad }),
});

const shampooRule = /* @__PURE__ */ defineRule({
  name: "shampoo",
  buffers: BUFFERS,
  scalars: ["negLr", "weightDecay"],
  update: ({ param, direction }, { negLr, weightDecay }) => ({
    param: fma(negLr, fma(weightDecay, param, direction), param),
  }),
});

const withMomentum = (nesterov: boolean) =>
  defineRule({
    name: nesterov ? "shampooNesterov" : "shampooMomentum",
    buffers: MOMENTUM_BUFFERS,
    scalars: ["negLr", "weightDecay", "momentum"],
    update({ param, momentumBuffer, direction }, { negLr, weightDecay, momentum }) {
      const decayed = fma(weightDecay, param, direction);
      const sum = fma(momentum, momentumBuffer, decayed);
      return { param: fma(negLr, nesterov ? fma(momentum, sum, decayed) : sum, param), momentumBuffer: sum };
    },
  });

const RULES: Readonly<Record<Momentum, Rule>> = {
  none: shampooRule,
  heavyBall: /* @__PURE__ */ withMomentum(false),
  nesterov: /* @__PURE__ */ withMomentum(true),
};

/** Every rule, for kernel builds and tests. */
export const shampooRules: readonly Rule[] = [
  gradientRule,
  momentumGradientRule,
  ...stageRules,
  ...Object.values(RULES),
];

const WHERE = "Shampoo";
const KINDS = ["adam", "rmsprop", "sgd"];

/** The numbers of a grafted method. */
const graftingOf = ({ kind, beta2 = kind === "adam" ? 0.999 : 0.99, eps = 1e-8 }: ShampooGrafting) => ({ beta2, eps });

/** @throws OptError BAD_ARGUMENT unless the value is in the range */
function checkRange(name: string, value: unknown, isWithin: (value: number) => boolean, range: string): void {
  checkValue(typeof value === "number" && isWithin(value), WHERE, name, range, value, "Leave it out for the default.");
}

const isBelowOne = (rate: number) => rate >= 0 && rate < 1;
const isCount = (count: number) => Number.isSafeInteger(count) && count > 0;

/** @throws OptError BAD_ARGUMENT */
function checkGrafting(grafting: ShampooGrafting): void {
  checkOptions(`${WHERE} grafting`, grafting, { kind: "string", beta2: "number", eps: "number" });
  const { kind } = grafting;
  checkValue(
    KINDS.includes(kind),
    WHERE,
    "grafting.kind",
    `one of ${KINDS.join(", ")}`,
    kind,
    'The default is { kind: "adam" }.',
  );
  const { beta2, eps } = graftingOf(grafting);
  checkRange("grafting.beta2", beta2, isBelowOne, "in [0, 1)");
  checkNotNegative(WHERE, "grafting.eps", eps);
}

const shampoo: Algorithm<ShampooOptions> = {
  name: WHERE,
  isDecoupled: true,
  defaults: {
    lr: 0.01,
    betas: [0.9, 1],
    eps: 1e-12,
    weightDecay: 0,
    momentum: 0,
    nesterov: false,
    grafting: { kind: "adam" },
    blockSize: 1024,
    preconditionFrequency: 10,
    startStep: null,
    maximize: false,
  },
  validate({ betas, eps, weightDecay, momentum, nesterov, grafting, startStep, blockSize, preconditionFrequency }) {
    const isPair = Array.isArray(betas) && betas.length === 2;
    checkValue(isPair, WHERE, "betas", "2 numbers", betas, "The default is [0.9, 1].");
    checkRange("betas[0]", betas[0], isBelowOne, "in [0, 1)");
    checkRange("betas[1]", betas[1], (rate) => rate > 0 && rate <= 1, "in (0, 1]");
    checkRange("eps", eps, (value) => value > 0, "above 0");
    checkNotNegative(WHERE, "weightDecay", weightDecay);
    checkRange("momentum", momentum, isBelowOne, "in [0, 1)");
    checkBoolean(WHERE, "nesterov", nesterov);
    checkGrafting(grafting);
    const counts = { blockSize, preconditionFrequency, ...(startStep !== null && { startStep }) };
    for (const [name, count] of Object.entries(counts)) checkRange(name, count, isCount, "a whole number from 1 on");
  },
  rule: (options) => RULES[momentumOf(options)],
  stageState: stateShapes,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars({ lr, betas: [beta1, beta2], weightDecay, momentum, grafting }, { step }, { neg, pow, sub }) {
    const { beta2: graftingBeta2, eps: graftingEps } = graftingOf(grafting);
    return {
      negLr: neg(lr),
      weightDecay,
      momentum,
      beta1,
      oneMinusBeta1: sub(1, beta1),
      biasCorrection1: sub(1, pow(beta1, step)),
      beta2,
      factorWeight: beta2 === 1 ? 1 : sub(1, beta2),
      biasCorrection2: beta2 === 1 ? 1 : sub(1, pow(beta2, step)),
      graftingBeta2,
      oneMinusGraftingBeta2: sub(1, graftingBeta2),
      graftingCorrection2: grafting.kind === "adam" ? sub(1, pow(graftingBeta2, step)) : 1,
      graftingEps,
    };
  },
};

const stages: Stages<ShampooOptions> = {
  rule: (options) => (momentumOf(options) === "none" ? gradientRule : momentumGradientRule),
  transform: preconditioned,
  transformedBy: ["eps", "grafting", "blockSize"],
  phase: phaseOf,
};

/**
 * Shampoo: gradients by inverse roots of their outer products, with the step length of another method.
 *
 *     L += G G^T          R += G^T G          with betas[1] < 1: L = (beta2 L + (1 - beta2) G G^T), and below L / (1 - beta2^t)
 *     m = beta1 m + (1 - beta1) G          M = m / (1 - beta1^t)          v = b v + (1 - b) G^2, b = grafting.beta2
 *     every `preconditionFrequency` steps: Li, Ri = (L + eps I)^(-1/4), (R + eps I)^(-1/4)
 *     A = M / (sqrt(v / (1 - b^t)) + grafting.eps)          D = |A| / |Li M Ri| * Li M Ri, before `startStep` D = A
 *     p -= lr * (D + weightDecay * p), or with a momentum B = momentum B + (D + weightDecay * p) in its place
 *
 * A is Adam's direction. RMSprop's has no 1 - b^t, and SGD's is M. Tensors of k dimensions have k matrices, whose roots are 1 / (2 k).
 * Sides above `blockSize` are cut, and each block has its own matrices and norms.
 * State of a matrix [m, n] of one block: 2 m n + 2 m^2 + 2 n^2 numbers, the squares on one rank where ranks divide the matrix.
 * Source: Shi et al., "A Distributed Data-Parallel PyTorch Implementation of the Distributed Shampoo Optimizer" (2023).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; UNSUPPORTED for `stateDType`; BAD_DTYPE for complex parameters; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Shampoo } from "@opt/shampoo";
 * const w = parameter([[1, 2], [3, 4]]);
 * const optimizer = new Shampoo([w], { lr: 0.01, betas: [0.9, 0.999], startStep: 2 });
 * for (let step = 0; step < 2; step++) {
 *   optimizer.zeroGrad();
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * }
 */
export class Shampoo extends StagedOptimizer<ShampooOptions> {
  protected override define(): Algorithm<ShampooOptions> {
    return shampoo;
  }

  protected override stages(): Stages<ShampooOptions> {
    return stages;
  }
}
