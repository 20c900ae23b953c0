/** APOLLO: options, rules, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBetas,
  checkNotNegative,
  checkValue,
  defineRule,
  div,
  emptyLike,
  fma,
  maximum,
  mul,
  norm,
  norms,
  type Rule,
  type Staged,
  StagedOptimizer,
  type StagedStep,
  type Stages,
  sqrt,
  type Tensor,
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

export interface APOLLOOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Decay rates of the running averages of the projected gradient and its square, in [0, 1). Default [0.9, 0.999]. */
  betas: readonly [number, number];
  /** Added to the denominator, >= 0. Default 1e-6. */
  eps: number;
  /** Decoupled weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Of projected gradients, a whole number from 1 on. Default 256; 1 for APOLLO-Mini. */
  rank: number;
  /** Steps from one random projection to the next, a whole number from 1 on. Default 200. */
  updateProjectionGap: number;
  /** The update of matrices is multiplied by its square root, >= 0. Default 1; 128 for APOLLO-Mini. */
  scale: number;
  /** What has a factor of its own: each row or column of the side that is not projected, or the whole matrix. Default "channel"; "tensor" for APOLLO-Mini. */
  scaleType: "channel" | "tensor";
  /** Which side of matrices is projected. Default "std", the shorter one. */
  projectionType: ProjectionType;
  /** By how much the norm of a matrix's update may grow from step to step, >= 1, null for any growth. Default 1.01. */
  normGrowthLimit: number | null;
  /** Of the random projections, a whole number from 0 on. Default 0. */
  seed: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

/** Adam's averages, and their quotient. */
const momentsRule = /* @__PURE__ */ defineRule({
  name: "apolloMoments",
  buffers: ["nextAvg", "nextSq", "quotient", "expAvg", "expAvgSq", "gradient"],
  scalars: ["beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", "eps"],
  update({ expAvg, expAvgSq, gradient }, { beta1, oneMinusBeta1, beta2, oneMinusBeta2, eps }) {
    const nextAvg = fma(oneMinusBeta1, gradient, mul(expAvg, beta1));
    const nextSq = fma(oneMinusBeta2, mul(gradient, gradient), mul(expAvgSq, beta2));
    return { nextAvg, nextSq, quotient: div(nextAvg, add(sqrt(nextSq), eps)) };
  },
});

/** Keeps divisors above 0. */
const TINY = 1e-8;

/** The limit of an update's norm, and the factor of the update. */
const limiterRule = /* @__PURE__ */ defineRule({
  name: "apolloLimiter",
  buffers: ["nextNorm", "factor", "lastNorm", "norm"],
  scalars: ["limit", "rootOfScale"],
  update({ lastNorm, norm }, { limit, rootOfScale }) {
    const over = div(maximum(div(norm, add(lastNorm, TINY)), limit), limit);
    return { nextNorm: div(norm, over), factor: div(rootOfScale, over) };
  },
});

/** The step along the direction, and the decay after it. */
const apolloRule = /* @__PURE__ */ defineRule({
  name: "apollo",
  buffers: BUFFERS,
  scalars: ["negStepSize", "keep"],
  update: ({ param, direction }, { negStepSize, keep }) => ({ param: mul(fma(negStepSize, direction, param), keep) }),
});

/** Every rule of APOLLO, for kernel builds and tests. */
export const apolloRules: readonly Rule[] = [gradientRule, momentsRule, limiterRule, apolloRule];

/** No norm grows by so much. */
const NO_LIMIT = 2 ** 100;

const DEFAULT_BETAS = [0.9, 0.999] as const;
const DEFAULT = "Leave it out for the default.";
const WHERE = "APOLLO";

const apollo: Algorithm<APOLLOOptions> = {
  name: WHERE,
  isDecoupled: true,
  defaults: {
    lr: 1e-3,
    betas: DEFAULT_BETAS,
    eps: 1e-6,
    weightDecay: 0,
    rank: 256,
    updateProjectionGap: 200,
    scale: 1,
    scaleType: "channel",
    projectionType: "std",
    normGrowthLimit: 1.01,
    seed: 0,
    maximize: false,
  },
  validate(options) {
    const { scaleType, normGrowthLimit, seed } = options;
    checkBetas(WHERE, options.betas, DEFAULT_BETAS);
    for (const name of ["eps", "weightDecay", "scale"] as const) checkNotNegative(WHERE, name, options[name]);
    checkProjection(WHERE, options);
    const isScaleType = ["channel", "tensor"].includes(scaleType);
    checkValue(isScaleType, WHERE, "scaleType", '"channel" or "tensor"', scaleType, DEFAULT);
    const isLimit =
      normGrowthLimit === null ||
      (typeof normGrowthLimit === "number" && normGrowthLimit >= 1 && normGrowthLimit <= NO_LIMIT);
    checkValue(isLimit, WHERE, "normGrowthLimit", "from 1 on, or null for no limit", normGrowthLimit, DEFAULT);
    checkValue(Number.isSafeInteger(seed) && seed >= 0, WHERE, "seed", "a whole number from 0 on", seed, DEFAULT);
  },
  rule: () => apolloRule,
  stageState(shape, options) {
    const shapes = stateShapes(shape, options);
    return "projection" in shapes ? { ...shapes, update_norm: [1] } : shapes;
  },
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars({ lr, betas: [beta1, beta2], eps, weightDecay, scale, normGrowthLimit }, { step }, arithmetic) {
    const { div, less, mul, neg, pow, sqrt, sub, where } = arithmetic;
    const correction = div(sqrt(sub(1, pow(beta2, step))), sub(1, pow(beta1, step)));
    return {
      beta1,
      oneMinusBeta1: sub(1, beta1),
      beta2,
      oneMinusBeta2: sub(1, beta2),
      eps,
      limit: where(less(step, 2), NO_LIMIT, normGrowthLimit ?? NO_LIMIT),
      rootOfScale: sqrt(scale),
      negStepSize: neg(mul(lr, correction)),
      keep: sub(1, mul(lr, weightDecay)),
    };
  },
};

/** A gradient by the factor that its projection's update has: of each row or column, or of all. */
function scaled(whole: Tensor, { gradient, quotient }: Member, axis: number | undefined): Tensor {
  const length = (x: Tensor) => norm(x, 2, axis, axis !== undefined);
  return whole.mul(length(quotient).div(length(gradient).add(TINY)));
}

/** The directions of a step, and what its state becomes. */
function directed(
  gradients: readonly Tensor[],
  { options, counters, states, launch, normals }: StagedStep<APOLLOOptions>,
): Staged {
  const { projectionType, scaleType, seed } = options;
  const drawn = ({ matrix }: Projection) => normals(matrix, seed).mul(1 / Math.sqrt(matrix.shape[1]!));
  const renew = phaseOf(options, counters) === "refresh" ? drawn : null;
  const members = gradients.map((gradient, i) => memberOf(gradient, states[i]!, projectionType, renew));
  launch(
    momentsRule,
    members.map(({ moments }) => moments),
  );
  const matrices = members.flatMap((member, i) => {
    const { projection } = member;
    if (projection === null) return [];
    const axis = projection.isLeft ? 0 : 1;
    const update = scaled(gradients[i]!, member, scaleType === "channel" ? axis : undefined);
    const lastNorm = states[i]!.get("update_norm")!;
    return [{ i, update, nextNorm: emptyLike(lastNorm), factor: emptyLike(lastNorm), lastNorm }];
  });
  if (matrices.length > 0) {
    launch(
      limiterRule,
      matrices.map(({ update, nextNorm, factor, lastNorm }) => [nextNorm, factor, lastNorm, norms([update])]),
    );
  }
  const directions = members.map(({ quotient }) => quotient);
  for (const { i, update, factor } of matrices) directions[i] = update.mul(factor);
  const limits = matrices.map(({ lastNorm, nextNorm }) => [lastNorm, nextNorm] as const);
  return { directions, states: [...members.flatMap(({ states }) => states), ...limits] };
}

const stages: Stages<APOLLOOptions> = {
  rule: () => gradientRule,
  transform: directed,
  transformedBy: ["projectionType", "scaleType", "seed"],
  phase: phaseOf,
};

/**
 * APOLLO: the gradient, each of its columns as long as AdamW would make it. It finds that from a random projection to a low rank.
 *
 *     std, m < n: R = P^T G          else R = G P          P: normal draws / sqrt(rank), anew every `updateProjectionGap` steps
 *     M = beta1 M + (1 - beta1) R          V = beta2 V + (1 - beta2) R^2          N = M / (sqrt(V) + eps)
 *     channel: s_j = |N_j| / |R_j|, over the rank          tensor: s = |N| / |R|          U = s G
 *     |U| at most normGrowthLimit times that of the step before
 *     p -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * sqrt(scale) * U          p -= lr * weightDecay * p
 *
 * Parameters that are no matrices have Adam's step. The projection depends on the seed, the step and the shape alone. The numbers, the eps
 * beside uncorrected averages, and the decay after the step are those of the authors' program.
 * State of a matrix [m, n] with m <= n: r (2 n + m) + 1 numbers, with r = min(rank, m), on one rank where ranks divide the matrix; AdamW has 2 m n.
 * `{ rank: 1, scaleType: "tensor", scale: 128 }` is APOLLO-Mini.
 * Source: Zhu et al., "APOLLO: SGD-like Memory, AdamW-level Performance" (2024); the limit is of Chen et al., "Fira" (2024).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; UNSUPPORTED for `stateDType`; BAD_DTYPE for complex parameters; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { APOLLO } from "@opt/galore";
 * const w = parameter([[1, 2], [3, 4]]);
 * const optimizer = new APOLLO([w], { lr: 0.01, rank: 1, scaleType: "tensor", scale: 128 });
 * for (let step = 0; step < 2; step++) {
 *   optimizer.zeroGrad();
 *   w.mul(w).sum().backward();
 *   optimizer.step();
 * }
 */
export class APOLLO extends StagedOptimizer<APOLLOOptions> {
  protected override define(): Algorithm<APOLLOOptions> {
    return apollo;
  }

  protected override stages(): Stages<APOLLOOptions> {
    return stages;
  }
}
