/** LBFGS: its options, and core's checks of them. */
import { type Algorithm, type BaseOptions, check, type GroupOptions, Optimizer, show } from "@opt/core";
import { moveRule } from "./direction";

export interface LBFGSOptions {
  /** Step length, or the first one that the line search tries, >= 0. Default 1. */
  lr: number;
  /** Iterations of a step, from 1. Default 20. */
  maxIter: number;
  /** Calls of the closure in a step, from 1. Default 1.25 maxIter, rounded down. */
  maxEval: number;
  /** A step ends where no component of the gradient is larger. Default 1e-7. */
  toleranceGrad: number;
  /** A step ends where no parameter, or the loss, changes by more. Default 1e-9. */
  toleranceChange: number;
  /** Changes of the gradient that are stored, from 1: two vectors of all parameters each. Default 100. */
  historySize: number;
  /** "strongWolfe" searches a step length along each direction. Default null: each is `lr`. */
  lineSearch: null | "strongWolfe";
}

export const WHERE = "LBFGS";

/** What other optimizers' groups may have besides. */
const CHANGES = Object.keys({
  clip: true,
  regularizer: true,
  stateDType: true,
  lazyMode: true,
  stochasticRounding: true,
  cautious: true,
  decay: true,
  mars: true,
  hyperball: true,
  centralize: true,
} satisfies Record<keyof GroupOptions, true>);

/** Core's groups, names and checks of options. It never steps. */
export class Parameters extends Optimizer<LBFGSOptions & BaseOptions> {
  protected override define(): Algorithm<LBFGSOptions & BaseOptions> {
    return lbfgs;
  }
}

export const lbfgs: Algorithm<LBFGSOptions & BaseOptions> = {
  name: WHERE,
  defaults: {
    lr: 1,
    maxIter: 20,
    maxEval: 25,
    toleranceGrad: 1e-7,
    toleranceChange: 1e-9,
    historySize: 100,
    lineSearch: null,
    maximize: false,
  },
  fixed: { maximize: false },
  validate(options) {
    for (const name of ["maxIter", "maxEval", "historySize"] as const) {
      check(
        Number.isInteger(options[name]) && options[name] > 0,
        "BAD_ARGUMENT",
        WHERE,
        () => `${name} must be a whole number from 1 on, got ${show(options[name])}.`,
        "Leave it out.",
      );
    }
    for (const name of ["lr", "toleranceGrad", "toleranceChange"] as const) {
      check(
        Number.isFinite(options[name]),
        "BAD_ARGUMENT",
        WHERE,
        () => `${name} must be a number, got ${show(options[name])}.`,
        "Leave it out for PyTorch's.",
      );
    }
    const { lineSearch } = options;
    check(
      lineSearch === null || lineSearch === "strongWolfe",
      "BAD_ARGUMENT",
      WHERE,
      () => `lineSearch must be null or "strongWolfe", got ${show(lineSearch)}.`,
      "null steps by lr.",
    );
    for (const name of CHANGES) {
      const value = (options as unknown as Record<string, unknown>)[name] ?? false;
      check(
        value === false,
        "UNSUPPORTED",
        WHERE,
        () => `${name} changes steps of single elements, and this optimizer's are of all at once.`,
        "Leave it out, or do it in the closure.",
      );
    }
  },
  checkParameter(name, { dtype }) {
    check(
      dtype === "f32" || dtype === "f64",
      "BAD_DTYPE",
      WHERE,
      () => `parameters must be f32 or f64, got ${name} of ${dtype}.`,
      "Train them by another optimizer.",
    );
  },
  rule: () => moveRule,
  initialCounters: { step: 0 },
  advance: (counters) => counters,
  scalars: () => ({}),
};
