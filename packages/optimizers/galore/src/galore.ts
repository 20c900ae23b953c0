/** GaLore: options, rules, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  defineRule,
  div,
  fma,
  mul,
  nanToNum,
  type Rule,
  type Staged,
  StagedOptimizer,
  type StagedStep,
  type Stages,
  slice,
  sqrt,
  svd,
  type Tensor,
  transpose,
  where,
} from "@opt/core";
import {
  BUFFERS,
  checkProjection,
  gradientRule,
  type Member,
  memberOf,
  type Projection,
  type ProjectionType,
  phaseOf,
  stateShapes,
} from "./projection";

export interface GaLoreOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the running averages of the projected gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-8. */
  eps: number;
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Of projected gradients, a whole number from 1 on. Default 128. */
  rank: number;
  /** Steps from one singular value decomposition to the next, a whole number from 1 on. Default 200. */
  updateProjectionGap: number;
  /** Factor of the update of matrices, >= 0. Default 1; the paper takes 0.25 with an lr of 0.01. */
  scale: number;
  /** Which side of matrices is projected. Default "std", the shorter one. */
  projectionType: ProjectionType;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const MOMENTS = {
  buffers: ["nextAvg", "nextSq", "quotient", "expAvg", "expAvgSq", "gradient"],
  scalars: ["beta1", "oneMinusBeta1", "biasCorrection1", "beta2", "oneMinusBeta2", "biasCorrection2", "eps"],
} as const;

/** Adam's averages, and the quotient that is the direction: of whole gradients, and of projected ones. */
const [momentsRule, projectedRule] = /* @__PURE__ */ [false, true].map((isProjected) =>
  defineRule({
    name: isProjected ? "galoreProjectedMoments" : "galoreMoments",
    buffers: MOMENTS.buffers,
    scalars: [...MOMENTS.scalars, ...(isProjected ? (["scale"] as const) : [])],
    update({ expAvg, expAvgSq, gradient }, h) {
      const nextAvg = fma(h.oneMinusBeta1, gradient, mul(expAvg, h.beta1));
      const nextSq = fma(h.oneMinusBeta2, mul(gradient, gradient), mul(expAvgSq, h.beta2));
      const denom = add(sqrt(div(nextSq, h.biasCorrection2)), h.eps);
      const quotient = div(div(nextAvg, h.biasCorrection1), denom);
      return { nextAvg, nextSq, quotient: isProjected ? mul(h.scale, quotient) : quotient };
    },
  }),
) as [Rule, Rule];

/** The step along Adam's direction. */
const galoreRule = /* @__PURE__ */ defineRule({
  name: "galore",
  buffers: BUFFERS,
  scalars: ["negLr", "keep"],
  update: ({ param, direction }, { negLr, keep }) => ({ param: fma(negLr, direction, mul(param, keep)) }),
});

/** Every rule of GaLore, for kernel builds and tests. */
export const galoreRules: readonly Rule[] = [gradientRule, momentsRule, projectedRule, galoreRule];

const DEFAULT_BETAS = [0.9, 0.999] as const;
const WHERE = "GaLore";

const galore: Algorithm<GaLoreOptions> = {
  name: WHERE,
  isDecoupled: true,
  defaults: {
    lr: 1e-3,
    betas: DEFAULT_BETAS,
    eps: 1e-8,
    weightDecay: 0,
    rank: 128,
    updateProjectionGap: 200,
    scale: 1,
    projectionType: "std",
    maximize: false,
  },
  validate(options) {
    checkBetas(WHERE, options.betas, DEFAULT_BETAS);
    for (const name of ["eps", "weightDecay", "scale"] as const) checkNotNegative(WHERE, name, options[name]);
    checkProjection(WHERE, options);
  },
  rule: () => galoreRule,
  stageState: stateShapes,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, betas: [beta1, beta2], eps, weightDecay, scale }, { step }, { mul, neg, pow, sub }) => ({
    beta1,
    oneMinusBeta1: sub(1, beta1),
    biasCorrection1: sub(1, pow(beta1, step)),
    beta2,
    oneMinusBeta2: sub(1, beta2),
    biasCorrection2: sub(1, pow(beta2, step)),
    eps,
    scale,
    negLr: neg(lr),
    keep: sub(1, mul(lr, weightDecay)),
  }),
};

/** The first singular vectors of a gradient, each of the sign in which it points along the old one. */
function refreshed(gradient: Tensor, { isLeft, matrix: old }: Projection): Tensor {
  // `svd` rejects what is not finite. A step that is skipped for that gets here.
  const { u, vh } = svd(nanToNum(gradient, { nan: 0, posinf: 0, neginf: 0 }), { fullMatrices: false });
  const vectors = slice(isLeft ? u : transpose(vh), 0, old.shape[1]!, 1);
  return where(old.mul(vectors).sum(0).lt(0), vectors.neg(), vectors);
}

/** The directions of a step, and what its state becomes. */
function directed(
  gradients: readonly Tensor[],
  { options, counters, states, launch }: StagedStep<GaLoreOptions>,
): Staged {
  const isRefresh = phaseOf(options, counters) === "refresh";
  const members = gradients.map((gradient, i) => {
    const renew = isRefresh ? (old: Projection) => refreshed(gradient, old) : null;
    return memberOf(gradient, states[i]!, options.projectionType, renew);
  });
  const momentsOf = (some: readonly Member[]) => some.map(({ moments }) => moments);
  const [matrices, others] = [true, false].map((isMatrix) =>
    momentsOf(members.filter(({ projection }) => (projection !== null) === isMatrix)),
  ) as [Tensor[][], Tensor[][]];
  if (matrices.length > 0) launch(projectedRule, matrices);
  if (others.length > 0) launch(momentsRule, others);
  return {
    directions: members.map(({ projection, quotient }) => projection?.back(quotient) ?? quotient),
    states: members.flatMap(({ states }) => states),
  };
}

const stages: Stages<GaLoreOptions> = {
  rule: () => gradientRule,
  transform: directed,
  transformedBy: ["projectionType"],
  phase: phaseOf,
};

/**
 * GaLore: AdamW whose averages of matrices are in a low rank, into which gradients are projected.
 *
 *     std, m < n: R = P^T G          else R = G P          P: the first `rank` singular vectors of G, anew every `updateProjectionGap` steps
 *     M = beta1 M + (1 - beta1) R          V = beta2 V + (1 - beta2) R^2
 *     N = M / (1 - beta1^t) / (sqrt(V / (1 - beta2^t)) + eps)          p -= lr * (scale * P N + weightDecay * p), or N P^T
 *
 * Parameters that are no matrices have AdamW's step. The averages stay when P changes, and each new vector has the sign in which it points
 * along the old one. The host computes singular vectors in float64, so devices have equal ones.
 * State of a matrix [m, n] with m <= n: r (2 n + m) numbers, with r = min(rank, m), on one rank where ranks divide the matrix; AdamW has 2 m n.
 * With `projectionType: "reverseStd"` the numbers are those of `optax.contrib.galore`, up to signs of singular vectors.
 * Source: Zhao et al., "GaLore: Memory-Efficient LLM Training by Gradient Low-Rank Projection" (2024).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; UNSUPPORTED for `stateDType`; BAD_DTYPE for complex parameters; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { GaLore } from "@opt/galore";
 * const w = parameter([[1, 2], [3, 4]]);
 * const optimizer = new GaLore([w], { lr: 0.01, rank: 1 });
 * for (let step = 0; step < 2; step++) {
 *   optimizer.zeroGrad();
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * }
 */
export class GaLore extends StagedOptimizer<GaLoreOptions> {
  protected override define(): Algorithm<GaLoreOptions> {
    return galore;
  }

  protected override stages(): Stages<GaLoreOptions> {
    return stages;
  }
}
