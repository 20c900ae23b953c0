/** LARS: options, rules, scalars and class. */
import {
  type Algorithm,
  add,
  type BaseOptions,
  checkBoolean,
  checkNotNegative,
  defineRule,
  div,
  less,
  mul,
  norms,
  type Rule,
  StagedOptimizer,
  type Stages,
  where,
} from "@opt/core";

export interface LARSOptions extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Weight decay, added to the gradient, >= 0. Default 0. */
  weightDecay: number;
  /** Length of a step relative to the parameter's, before lr, >= 0. Default 1e-3. */
  trustCoefficient: number;
  /** Added to the norm of the direction, >= 0. Default 0. */
  eps: number;
  /** Weight of earlier steps, >= 0. Default 0.9. */
  momentum: number;
  /** Look ahead along the momentum. Default false. */
  nesterov: boolean;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const BUFFERS = ["param", "grad", "momentumBuffer", "direction"] as const;

/** The gradient with its decay, whose length the step does not keep. */
const larsDirectionRule = /* @__PURE__ */ defineRule({
  name: "larsDirection",
  buffers: BUFFERS,
  scalars: ["weightDecay"],
  update: ({ param, grad }, { weightDecay }) => ({ direction: add(grad, mul(weightDecay, param)) }),
});

/** The step in optax's order of operations: without Nesterov's momentum, and with it. */
const larsStepRules = /* @__PURE__ */ [false, true].map((nesterov) =>
  defineRule({
    name: nesterov ? "larsNesterov" : "lars",
    buffers: BUFFERS,
    scalars: ["negLr", "trustCoefficient", "eps", "momentum", "paramNorm", "directionNorm"],
    update({ param, momentumBuffer, direction }, h) {
      const ratio = div(mul(h.trustCoefficient, h.paramNorm), add(h.directionNorm, h.eps));
      const trust = where(less(0, h.paramNorm), where(less(0, h.directionNorm), ratio, 1), 1);
      const step = mul(h.negLr, mul(direction, trust));
      const trace = add(step, mul(h.momentum, momentumBuffer));
      return { param: add(param, nesterov ? add(step, mul(h.momentum, trace)) : trace), momentumBuffer: trace };
    },
  }),
);

/** Every rule, for kernel builds and tests. */
export const larsRules: readonly Rule[] = [larsDirectionRule, ...larsStepRules];

const lars: Algorithm<LARSOptions> = {
  name: "LARS",
  defaults: {
    lr: 1e-3,
    weightDecay: 0,
    trustCoefficient: 1e-3,
    eps: 0,
    momentum: 0.9,
    nesterov: false,
    maximize: false,
  },
  validate({ nesterov, ...numbers }) {
    for (const name of ["weightDecay", "trustCoefficient", "eps", "momentum"] as const) {
      checkNotNegative("LARS", name, numbers[name]);
    }
    checkBoolean("LARS", "nesterov", nesterov);
  },
  rule: ({ nesterov }) => larsStepRules[nesterov ? 1 : 0]!,
  stageScalars: ["paramNorm", "directionNorm"],
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, weightDecay, trustCoefficient, eps, momentum }, _counters, { neg }) => ({
    weightDecay,
    negLr: neg(lr),
    trustCoefficient,
    eps,
    momentum,
  }),
};

const stages: Stages<LARSOptions> = {
  rule: () => larsDirectionRule,
  transform: (directions, { params }) => ({
    directions,
    scalars: { paramNorm: norms(params), directionNorm: norms(directions) },
  }),
  transformedBy: [],
};

/**
 * LARS, for large batches: SGD whose steps are as long as a small part of each parameter's norm.
 *
 *     u = grad + weightDecay * p          s = lr * trustCoefficient * |p| / (|u| + eps) * u          b = momentum * b - s
 *     p += b          nesterov: p += momentum * b - s
 *
 * Where |p| or |u| is 0, s = lr * u. The numbers are those of optax.lars: the momentum has the learning rate in it.
 * Source: You et al., "Large Batch Training of Convolutional Networks" (2017).
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; BAD_DTYPE for complex parameters; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { LARS } from "@opt/lars";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new LARS([w], { lr: 1, weightDecay: 1e-4 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class LARS extends StagedOptimizer<LARSOptions> {
  protected override define(): Algorithm<LARSOptions> {
    return lars;
  }

  protected override stages(): Stages<LARSOptions> {
    return stages;
  }
}
