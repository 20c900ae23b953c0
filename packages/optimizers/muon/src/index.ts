/** Muon: options, the updates of one element in PyTorch's order of operations, its numbers of a step, and the class. */
import {
  type Algorithm,
  type BaseOptions,
  check,
  checkBoolean,
  checkNotNegative,
  checkValue,
  defineRule,
  fma,
  fusedLerp,
  mul,
  type Rule,
  StagedOptimizer,
  type Stages,
  Tensor,
} from "@opt/core";
import { balanced, neuronRules, stateShapes } from "./neurons";
import { type Coefficients, orthogonalized } from "./orthogonalize";

export { type Coefficients, POLAR_EXPRESS } from "./orthogonalize";

export interface MuonOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Weight decay, >= 0, decoupled from the gradient. Default 0.1. */
  weightDecay: number;
  /** Weight of the old momentum in the average of gradients, >= 0. Default 0.95. */
  momentum: number;
  /** Orthogonalize the average of the gradient and the momentum. Default true. */
  nesterov: boolean;
  /** a, b, c of the iteration x = a x + (b x x^T + c (x x^T)^2) x, or those of each: the last ones go on. Default [3.4445, -4.775, 2.0315]. */
  nsCoefficients: Coefficients | readonly Coefficients[];
  /** Least norm to divide by, >= 0. Default 1e-7. */
  eps: number;
  /** Iterations, 0 to 99. Default 5. */
  nsSteps: number;
  /** The factor of lr for a matrix [m, n]: sqrt(max(1, m / n)), or 0.2 sqrt(max(m, n)), by which lr and decay tuned for AdamW serve. Default "original". */
  adjustLrFn: "original" | "match_rms_adamw";
  /** NorMuon's decay rate of the average mean square of each row, by which directions are balanced, in [0, 1): 0.95 there. Default null: none. */
  neuronBeta: number | null;
  /** Blocks of rows in each matrix, as those of an attention's heads, that are orthogonalized alone, from 1 on. Default 1. */
  heads: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const BUFFERS = ["param", "grad", "momentumBuffer", "direction"] as const;

/** What is orthogonalized. Scalars: `muonScalars`. */
export const muonDirectionRules = {
  plain: /* @__PURE__ */ defineRule({
    name: "muonDirection",
    buffers: BUFFERS,
    scalars: ["weight"],
    update: ({ grad, momentumBuffer }, { weight }) => ({ direction: fusedLerp(momentumBuffer, grad, weight) }),
  }),
  nesterov: /* @__PURE__ */ defineRule({
    name: "muonDirectionNesterov",
    buffers: BUFFERS,
    scalars: ["weight", "momentum"],
    update: ({ grad, momentumBuffer }, { weight, momentum }) => ({
      direction: fusedLerp(grad, fusedLerp(momentumBuffer, grad, weight), momentum),
    }),
  }),
} as const;

/** The step along a direction that is orthogonal. */
export const muonRule = /* @__PURE__ */ defineRule({
  name: "muon",
  buffers: BUFFERS,
  scalars: ["weight", "keep", "negLr"],
  update: ({ param, grad, momentumBuffer, direction }, { weight, keep, negLr }) => ({
    param: fma(negLr, direction, mul(param, keep)),
    momentumBuffer: fusedLerp(momentumBuffer, grad, weight),
  }),
});

/** Every rule, for kernel builds and tests. */
export const muonRules: readonly Rule[] = [
  muonDirectionRules.plain,
  muonDirectionRules.nesterov,
  ...neuronRules,
  muonRule,
];

const WHERE = "Muon";

const muon: Algorithm<MuonOptions> = {
  name: WHERE,
  isDecoupled: true,
  defaults: {
    lr: 1e-3,
    weightDecay: 0.1,
    momentum: 0.95,
    nesterov: true,
    nsCoefficients: [3.4445, -4.775, 2.0315],
    eps: 1e-7,
    nsSteps: 5,
    adjustLrFn: "original",
    neuronBeta: null,
    heads: 1,
    maximize: false,
  },
  validate({ nesterov, nsCoefficients, nsSteps, adjustLrFn, neuronBeta, heads, ...numbers }) {
    for (const name of ["weightDecay", "momentum", "eps"] as const) checkNotNegative(WHERE, name, numbers[name]);
    checkBoolean(WHERE, "nesterov", nesterov);
    const isTriple = (given: unknown) => Array.isArray(given) && given.length === 3 && given.every(Number.isFinite);
    const areTriples = Array.isArray(nsCoefficients) && nsCoefficients.length > 0 && nsCoefficients.every(isTriple);
    checkValue(
      isTriple(nsCoefficients) || areTriples,
      WHERE,
      "nsCoefficients",
      "three numbers, or lists of three",
      nsCoefficients,
      "The default is [3.4445, -4.775, 2.0315].",
    );
    const isCount = Number.isInteger(nsSteps) && nsSteps >= 0 && nsSteps < 100;
    checkValue(isCount, WHERE, "nsSteps", "an integer from 0 to 99", nsSteps, "The default is 5.");
    const isKnown = ["original", "match_rms_adamw"].includes(adjustLrFn);
    checkValue(
      isKnown,
      WHERE,
      "adjustLrFn",
      '"original" or "match_rms_adamw"',
      adjustLrFn,
      "The second has AdamW's learning rates.",
    );
    const isRate = neuronBeta === null || (typeof neuronBeta === "number" && neuronBeta >= 0 && neuronBeta < 1);
    checkValue(isRate, WHERE, "neuronBeta", "in [0, 1), or null", neuronBeta, "NorMuon has 0.95.");
    const areHeads = Number.isSafeInteger(heads) && heads > 0;
    checkValue(areHeads, WHERE, "heads", "a whole number from 1 on", heads, "The default is 1.");
  },
  checkParameter(name, { shape, dtype }) {
    check(
      dtype !== "c64",
      "BAD_DTYPE",
      WHERE,
      () => `parameters must be real, got ${name} of c64.`,
      "Train it by another optimizer, AdamW for example.",
    );
    check(
      shape.length >= 2 && shape.length <= 4,
      "BAD_SHAPE",
      WHERE,
      () => `parameters must have 2 to 4 dimensions, got ${name} of ${shape.length}.`,
      "Train biases and norms by another optimizer, AdamW for example.",
    );
  },
  rule: () => muonRule,
  stageState: (shape, { neuronBeta }) => (neuronBeta === null ? {} : stateShapes(shape)),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  /** PyTorch counts no steps: where there is a momentum, there was a first one. */
  counted: ({ step, momentum_buffer }) => ({
    step: step === undefined ? Number(momentum_buffer instanceof Tensor) : (step as number),
  }),
  scalars: ({ lr, momentum, weightDecay, neuronBeta }, _, { sub, mul, neg }) => ({
    neuronWeight: sub(1, neuronBeta ?? 1),
    weight: sub(1, momentum),
    momentum,
    keep: sub(1, mul(lr, weightDecay)),
    negLr: neg(lr),
  }),
};

const stages: Stages<MuonOptions> = {
  rule: ({ nesterov }) => muonDirectionRules[nesterov ? "nesterov" : "plain"],
  /** Directions are freed when the next ones are computed. */
  transform(given, step) {
    const directions = orthogonalized(given, step.options, (direction) => direction.dispose());
    return step.options.neuronBeta === null ? { directions } : balanced(directions, step);
  },
  transformedBy: ["nesterov", "nsCoefficients", "nsSteps", "eps", "adjustLrFn", "heads"],
  phase: ({ neuronBeta }) => (neuronBeta === null ? "" : "neurons"),
  ofDirectionsAlone: ({ neuronBeta }) => neuronBeta === null,
};

/**
 * Muon, for the matrices of hidden layers: steps along a momentum that a few matrix products have made orthogonal.
 *
 *     m = momentum * m + (1 - momentum) grad          d = m          nesterov: d = momentum * m + (1 - momentum) grad
 *     x = d / |d|, nsSteps times x = a x + (b x x^T + c (x x^T)^2) x
 *     p = p - lr * weightDecay * p - lr * factor * x          factor: sqrt(max(1, rows / columns)), see `adjustLrFn`
 *     neuronBeta: v = neuronBeta * v + (1 - neuronBeta) * the mean square of each row of x, y = x / (sqrt(v) + 1e-10), x = y |x| / |y|
 *
 * Parameters of 3 dimensions are a batch of matrices, as of an attention's heads; those of 4 are filters [out, in, height, width], whose
 * matrices are [out, in * height * width]. `heads` divides rows into so many matrices. Matrices of one shape are computed in one product, with the words of each alone.
 * The numbers are those of torch.optim.Muon (PyTorch 2.13): the momentum's bit for bit in float32, and x up to roundings of bfloat16.
 * Sources: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024); Liu et al., "Muon is Scalable for LLM Training" (2025);
 * Amsel et al., "The Polar Express: Optimal Matrix Sign Methods and Their Application to the Muon Algorithm" (2025), for `POLAR_EXPRESS`;
 * Li et al., "NorMuon: Making Muon more efficient and scalable" (2025), for `neuronBeta`.
 *
 * @throws OptError BAD_SHAPE for parameters of less than 2 or more than 4 dimensions, BAD_DTYPE for complex ones, BAD_ARGUMENT for an option out of range; UNSUPPORTED for
 * `stateDType` with `neuronBeta`; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Muon } from "@opt/muon";
 * const w = parameter([[1, 2], [3, 4]]);
 * const optimizer = new Muon([w], { lr: 0.02 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Muon extends StagedOptimizer<MuonOptions> {
  protected override define(): Algorithm<MuonOptions> {
    return muon;
  }

  protected override stages(): Stages<MuonOptions> {
    return stages;
  }
}
