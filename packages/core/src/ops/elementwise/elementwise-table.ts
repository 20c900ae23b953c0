/** Every elementwise op: its forward expression, and for each operand the derivative times the incoming gradient g. */
import type { Expression, Op } from "../../rule/expression";
import {
  abs,
  add,
  cos,
  div,
  erf,
  exp,
  expm1,
  fma,
  less,
  log,
  log1p,
  maximum,
  minimum,
  mul,
  neg,
  pow,
  sin,
  sqrt,
  sub,
  tanh,
  where,
} from "../../rule/symbols";

type E = Expression;

export interface ElementwiseDefinition {
  readonly forward: (...operands: Expression[]) => Expression;
  /** Per operand, from the gradient g, the operands and the result y; null where no gradient flows. */
  readonly derivatives: readonly (((g: Expression, y: Expression, ...operands: Expression[]) => Expression) | null)[];
  /** The same where the gradient is differentiated again: what holds exactly, if `derivatives` lean on a rounded y. */
  readonly recorded?: ElementwiseDefinition["derivatives"];
  /** The operands whose gradient is piecewise constant in them, and has zeros as its own gradient in PyTorch rather than null. */
  readonly flat?: readonly number[];
  /** What integers and booleans give: a float (torch's true division), a boolean, or by default an integer. */
  readonly result?: "float" | "bool";
}

const SQRT_HALF = Math.SQRT1_2;
const INV_SQRT_TWO_PI = 1 / Math.sqrt(2 * Math.PI);
const TWO_OVER_SQRT_PI = 2 / Math.sqrt(Math.PI);

/** The standard normal distribution function. */
const normalCdf = (x: E) => mul(0.5, add(1, erf(mul(x, SQRT_HALF))));

/** x times the standard normal density. */
const timesNormalDensity = (x: E) => mul(x, mul(INV_SQRT_TWO_PI, exp(mul(-0.5, mul(x, x)))));
/** Where x is smaller, x * normalCdf(x) may have lost digits. */
const LEAST_FOR_QUOTIENT = 1e-30;

/** `value`, but NaN where b is NaN (the rule op max lets only its first operand's NaN through). */
export const nanOf = (b: E, value: E) => where(less(b, 1), value, where(less(0, b), value, b));

/** One of two where x is a number, and `no` where it is NaN. */
export const ifNumber = (x: E, yes: E | number, no: E | number) => where(less(minimum(x, 1), 2), yes, no);
/** Where neither is less: equal, or one is NaN. */
export const ifEqual = (a: E, b: E, yes: E | number, no: E | number) =>
  where(less(a, b), no, where(less(b, a), no, ifNumber(a, ifNumber(b, yes, no), no)));
/** a <= b, which NaN never is. */
export const ifAtMost = (a: E, b: E, yes: E | number, no: E | number) => where(less(a, b), yes, ifEqual(a, b, yes, no));

/** g where the first operand is larger or one is NaN, half of it where they are equal. */
const whereLarger = (g: E, _y: E, a: E, b: E) => where(less(a, b), 0, ifEqual(a, b, mul(0.5, g), g));
const whereSmaller = (g: E, y: E, a: E, b: E) => whereLarger(g, y, b, a);

/** 0 without a slope where x is 0, and NaN where it is NaN. */
export const zeroOrNaN = (x: E) => where(less(x, 1), 0, x);

const isZero = (x: E, yes: E | number, no: E | number) => where(less(x, 0), no, where(less(0, x), no, yes));

const compared = (forward: (a: E, b: E) => E): ElementwiseDefinition => ({
  forward: forward as ElementwiseDefinition["forward"],
  derivatives: [null, null],
  result: "bool",
});

export const ELEMENTWISE = {
  add: { forward: add, derivatives: [(g) => g, (g) => g] },
  sub: { forward: sub, derivatives: [(g) => g, (g) => neg(g)] },
  mul: { forward: mul, derivatives: [(g, _y, _a, b) => mul(g, b!), (g, _y, a) => mul(g, a!)] },
  div: {
    forward: div,
    derivatives: [(g, _y, _a, b) => div(g, b!), (g, y, _a, b) => neg(div(mul(g, y), b!))],
    result: "float",
  },
  neg: { forward: neg, derivatives: [(g) => neg(g)] },
  abs: {
    forward: abs,
    derivatives: [(g, _y, x) => mul(g, where(less(x!, 0), -1, isZero(x!, 0, 1)))],
    flat: [0],
  },
  sqrt: { forward: sqrt, derivatives: [(g, y) => div(g, mul(2, y))], result: "float" },
  fma: {
    forward: fma,
    derivatives: [(g, _y, _a, b) => mul(g, b!), (g, _y, a) => mul(g, a!), (g) => g],
  },
  max: { forward: maximum, derivatives: [whereLarger, whereSmaller] },
  min: { forward: minimum, derivatives: [whereSmaller, whereLarger] },
  less: compared((a, b) => where(less(a, b), 1, 0)),
  le: compared((a, b) => ifAtMost(a, b, 1, 0)),
  eq: compared((a, b) => ifEqual(a, b, 1, 0)),
  ne: compared((a, b) => ifEqual(a, b, 0, 1)),
  select: {
    forward: (condition, a, b) => isZero(condition!, b!, a!),
    derivatives: [null, (g, _y, condition) => isZero(condition!, 0, g), (g, _y, condition) => isZero(condition!, g, 0)],
  },
  exp: { forward: exp, derivatives: [(g, y) => mul(g, y)], result: "float" },
  log: { forward: log, derivatives: [(g, _y, x) => div(g, x!)], result: "float" },
  tanh: { forward: tanh, derivatives: [(g, y) => mul(g, sub(1, mul(y, y)))], result: "float" },
  erf: {
    forward: erf,
    derivatives: [(g, _y, x) => mul(g, mul(TWO_OVER_SQRT_PI, exp(neg(mul(x!, x!)))))],
    result: "float",
  },
  sin: { forward: sin, derivatives: [(g, _y, x) => mul(g, cos(x!))], result: "float" },
  cos: { forward: cos, derivatives: [(g, _y, x) => neg(mul(g, sin(x!)))], result: "float" },
  pow: {
    forward: pow,
    derivatives: [
      (g, _y, a, b) => isZero(b!, b!, mul(g, mul(b!, pow(a!, sub(b!, 1))))),
      (g, y, a, b) => mul(g, where(less(b!, 0), mul(y, log(a!)), isZero(a!, a!, mul(y, log(a!))))),
    ],
    recorded: [
      (g, _y, a, b) => isZero(b!, zeroOrNaN(b!), mul(g, mul(b!, pow(a!, sub(b!, 1))))),
      (g, y, a, b) => {
        const slope = (a: E) => mul(y, log(a));
        const isNull = isZero(a!, zeroOrNaN(a!), slope(isZero(a!, 1, a!)));
        return mul(g, where(less(b!, 0), slope(a!), isNull));
      },
    ],
  },
  log1p: { forward: log1p, derivatives: [(g, _y, x) => div(g, add(1, x!))], result: "float" },
  expm1: { forward: expm1, derivatives: [(g, y) => mul(g, add(y, 1))], result: "float" },
  sigmoid: {
    forward: (x) => div(1, add(1, exp(neg(x!)))),
    derivatives: [(g, y) => mul(g, mul(y, sub(1, y)))],
    result: "float",
  },
  relu: {
    forward: (x) => maximum(x!, 0),
    derivatives: [(g, y) => where(less(0, y), g, where(less(y, 1), 0, g))],
    flat: [0],
  },
  gelu: {
    forward: (x) => mul(x!, normalCdf(x!)),
    // y / x is normalCdf(x), in a third of erf's time.
    derivatives: [
      (g, y, x) => {
        const cdf = where(less(abs(x!), LEAST_FOR_QUOTIENT), 0.5, div(y, x!));
        return mul(g, add(cdf, timesNormalDensity(x!)));
      },
    ],
    recorded: [(g, _y, x) => mul(g, add(normalCdf(x!), timesNormalDensity(x!)))],
    result: "float",
  },
  maximum: {
    forward: (a, b) => nanOf(b!, maximum(a!, b!)),
    derivatives: [whereLarger, whereSmaller],
  },
  minimum: {
    forward: (a, b) => nanOf(b!, minimum(a!, b!)),
    derivatives: [whereSmaller, whereLarger],
  },
} satisfies Record<Op | (string & {}), ElementwiseDefinition> as Record<ElementwiseName, ElementwiseDefinition>;

export type ElementwiseName = Op | "le" | "eq" | "ne" | "sigmoid" | "relu" | "gelu" | "maximum" | "minimum";

/** The name of an op that only those ship who use it: it comes into the table at its first call. */
export function extended(name: string, definition: ElementwiseDefinition): ElementwiseName {
  ELEMENTWISE[name as ElementwiseName] ??= definition;
  return name as ElementwiseName;
}
