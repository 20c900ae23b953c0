/** The sets that parameters and samples of distributions are in. */
import { all, logicalAnd, tril } from "../functions";
import { diagonalOf } from "../ops/shape/diagonals";
import type { Tensor } from "../tensor/tensor";

/** A set of numbers, vectors or matrices: `distribution.support` is one. */
export interface Constraint {
  /** For example "positive". */
  readonly name: string;
  /** How many of the last axes belong to one element of the set. */
  readonly eventDim: number;
  /** Of each element whether it is in the set, as bool: without the last `eventDim` axes. */
  check(x: Tensor): Tensor;
}

const constraint = (name: string, check: (x: Tensor) => Tensor, eventDim = 0): Constraint => ({
  name,
  eventDim,
  check,
});

/** The last `count` axes. */
const lastAxes = (count: number) => Array.from({ length: count }, (_, i) => i - count);

/** Elements whose last `count` axes are all in a set. */
export function independentConstraint(base: Constraint, count: number): Constraint {
  if (count === 0) return base;
  const { name, eventDim } = base;
  return constraint(name, (x) => all(base.check(x), lastAxes(count)), eventDim + count);
}

export const real = /* @__PURE__ */ constraint("a number", (x) => x.eq(x));
export const positive = /* @__PURE__ */ constraint("positive", (x) => x.gt(0));
export const nonNegative = /* @__PURE__ */ constraint(">= 0", (x) => x.ge(0));
export const unitInterval = /* @__PURE__ */ constraint("from 0 to 1", (x) => logicalAnd(x.ge(0), x.le(1)));
export const zeroOrOne = /* @__PURE__ */ constraint("0 or 1", (x) => x.mul(x).eq(x));
export const realVector = /* @__PURE__ */ independentConstraint(real, 1);

const isWhole = (x: Tensor) => x.eq(x.to("i32"));

export const wholeNumber = /* @__PURE__ */ constraint("an integer >= 0", (x) => logicalAnd(x.ge(0), isWhole(x)));

/** The integers from 0 to below `count`. */
export const integersBelow = (count: number): Constraint =>
  constraint(`an integer from 0 to ${count - 1}`, (x) => logicalAnd(logicalAnd(x.ge(0), x.lt(count)), isWhole(x)));

/** From a lower bound to an upper one, both included. */
export const interval = (low: Tensor | number, high: Tensor | number): Constraint =>
  constraint("from the lower to the upper bound", (x) => logicalAnd(x.ge(low), x.le(high)));

export const lessThan = (high: Tensor): Constraint => constraint("less than the upper bound", (x) => x.lt(high));

/** PyTorch's bound of what a sum of probabilities may be off. */
const SUM_ERROR = 1e-6;

export const simplex = /* @__PURE__ */ constraint(
  ">= 0, with the sum 1",
  (x) => logicalAnd(all(x.ge(0), -1), x.sum(-1).sub(1).abs().lt(SUM_ERROR)),
  1,
);

export const oneHotVector = /* @__PURE__ */ constraint(
  "0 but for a single 1",
  (x) => logicalAnd(all(zeroOrOne.check(x), -1), x.sum(-1).eq(1)),
  1,
);

/** Whose lower triangle is positive definite, `cholesky` says. */
export const symmetricMatrix = /* @__PURE__ */ constraint(
  "symmetric",
  (x) => all(x.sub(x.transpose()).abs().le(x.transpose().abs().mul(1e-5).add(1e-6)), [-2, -1]),
  2,
);

export const lowerCholesky = /* @__PURE__ */ constraint(
  "lower triangular, and positive on the diagonal",
  (x) => logicalAnd(all(tril(x).eq(x), [-2, -1]), all(diagonalOf(x).gt(0), -1)),
  2,
);
