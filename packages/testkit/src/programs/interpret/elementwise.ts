/** Elementwise ops. What PyTorch's backward saves of a kinked op is mentioned by the gradient, which then has zeros for its own gradient. */
import type { Options } from "../program";
import { constant, filled, flat, type Node, pick, plus, times, unary } from "./node";
import { mustHold, together } from "./places";

export type Operand = Node | number;
/** The result of an op. @throws Rejected where every device must reject */
export type Interpretation = (operands: readonly Operand[], options: Options) => Node;

export const asNode = (x: Operand): Node => (typeof x === "number" ? filled([], x) : x);

export const optional = (x: Operand | undefined): Node | undefined => (x === undefined ? undefined : asNode(x));

export const add = (a: Operand, b: Operand): Node => {
  const [x, y] = together(asNode(a), asNode(b));
  return plus(x!, y!);
};
export const mul = (a: Operand, b: Operand): Node => {
  const [x, y] = together(asNode(a), asNode(b));
  return times(x!, y!);
};
const neg = (x: Operand): Node => mul(x, -1);
export const sub = (a: Operand, b: Operand): Node => add(a, neg(b));

/** x to a power that is a number. */
export const raised = (x: Node, p: number): Node =>
  p === 0
    ? filled(x.shape, 1)
    : unary(
        x,
        (v) => v ** p,
        (own) => mul(raised(own, p - 1), p),
      );
export const exp = (x: Node): Node => unary(x, Math.exp, (_, result) => result);
export const log = (x: Node): Node => unary(x, Math.log, (own) => raised(own, -1));
const sqrt = (x: Node): Node => unary(x, Math.sqrt, (_, result) => mul(raised(result, -1), 0.5));
export const tanh = (x: Node): Node => unary(x, Math.tanh, (_, result) => sub(1, mul(result, result)));
export const sigmoid = (x: Node): Node =>
  unary(
    x,
    (v) => 1 / (1 + Math.exp(-v)),
    (_, result) => mul(result, sub(1, result)),
  );
const sin = (x: Node): Node => unary(x, Math.sin, cos);
const cos = (x: Node): Node => unary(x, Math.cos, (own) => neg(sin(own)));
const erf = (x: Node): Node => unary(x, erfOf, (own) => mul(exp(neg(mul(own, own))), 2 / Math.sqrt(Math.PI)));

/** By its series, and far out by a continued fraction. */
function erfOf(x: number): number {
  const size = Math.abs(x);
  if (size > 3) {
    let fraction = 0;
    for (let k = 60; k > 0; k--) fraction = k / 2 / (size + fraction);
    return Math.sign(x) * (1 - Math.exp(-size * size) / Math.sqrt(Math.PI) / (size + fraction));
  }
  let [sum, term] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(sum); n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

/** x times a slope that is constant between kinks. */
const kinked =
  (slope: (value: number) => number) =>
  (x: Node): Node =>
    times(x, flat(x, slope));
export const abs = kinked(Math.sign);
export const relu = kinked((v) => (v > 0 ? 1 : 0));
/** A slope between two bounds, outside of which it is constant. */
const between =
  (low: number, high: number) =>
  (x: Node): Node =>
    plus(
      kinked((v) => (v > low && v < high ? 1 : 0))(x),
      flat(x, (v) => (v <= low ? low : v >= high ? high : 0)),
    );

const mask = (x: Node, holds: (value: number, i: number) => boolean): Node =>
  constant({ shape: x.shape, data: x.data.map((v, i) => Number(holds(v, i))) });
/** a where the condition holds, b elsewhere: gradients mention neither. */
export function where(condition: Node, a: Operand, b: Operand): Node {
  const [is, x, y] = together(constant(condition), asNode(a), asNode(b)) as [Node, Node, Node];
  // Nothing is multiplied: 0 times infinity is NaN.
  const taken = (from: Node, isTaken: boolean) =>
    pick(
      from,
      is.data.map((v, i) => ((v !== 0) === isTaken ? i : -1)),
      from.shape,
    );
  return plus(taken(x, true), taken(y, false));
}
/** Equal elements share the gradient. */
const choice =
  (prefers: (a: number, b: number) => boolean): Interpretation =>
  ([a, b]) => {
    const [x, y] = together(asNode(a!), asNode(b!)) as [Node, Node];
    const share = x.data.map((v, i) => (v === y.data[i] ? 0.5 : Number(prefers(v, y.data[i]!))));
    const ofX = constant({ shape: x.shape, data: share });
    return plus(times(x, ofX), times(y, sub(1, ofX)));
  };
/** Of the elements on a bound all of the gradient goes through. */
function clamp(x: Node, low: number | null, high: number | null): Node {
  const inside = mask(x, (v) => (low === null || v >= low) && (high === null || v <= high));
  const bounds = constant({
    shape: x.shape,
    data: x.data.map((v) => Math.min(Math.max(v, low ?? v), high ?? Number.POSITIVE_INFINITY)),
  });
  return plus(
    times(x, inside),
    times(
      bounds,
      mask(inside, (v) => v === 0),
    ),
  );
}

/** x itself above 20, as PyTorch's. */
const softplus = (x: Node): Node =>
  unary(
    x,
    (v) => (v > 20 ? v : Math.max(v, 0) + Math.log1p(Math.exp(-Math.abs(v)))),
    (own) =>
      where(
        mask(own, (v) => v <= 20),
        sigmoid(own),
        1,
      ),
  );
const silu = (x: Node): Node => times(x, sigmoid(x));
const gelu = (x: Node): Node => mul(times(x, add(erf(mul(x, Math.SQRT1_2)), 1)), 0.5);
const geluTanh = (x: Node): Node => {
  const inner = mul(add(x, mul(raised(x, 3), 0.044715)), Math.sqrt(2 / Math.PI));
  return mul(times(x, add(tanh(inner), 1)), 0.5);
};

/** The slope of its slope is 0 where both pieces meet. */
const elu = (x: Node): Node =>
  unary(
    x,
    (v) => (v > 0 ? v : Math.expm1(v)),
    (own) => {
      const isBelow = mask(own, (v) => v < 0);
      return where(isBelow, exp(where(isBelow, own, 0)), 1);
    },
  );

const one =
  (f: (x: Node) => Node): Interpretation =>
  ([x]) =>
    f(asNode(x!));
const compared =
  (holds: (a: number, b: number) => boolean): Interpretation =>
  ([a, b]) => {
    const [x, y] = together(asNode(a!), asNode(b!)) as [Node, Node];
    return mask(constant(x), (v, i) => holds(v, y.data[i]!));
  };

export const ELEMENTWISE: Readonly<Record<string, Interpretation>> = {
  neg: one(neg),
  abs: one(abs),
  relu: one(relu),
  relu6: one(between(0, 6)),
  hardtanh: one(between(-1, 1)),
  leakyRelu: one(kinked((v) => (v > 0 ? 1 : 0.25))),
  elu: one(elu),
  exp: one(exp),
  log: one(log),
  sqrt: one(sqrt),
  tanh: one(tanh),
  sigmoid: one(sigmoid),
  sin: one(sin),
  cos: one(cos),
  erf: one(erf),
  gelu: one(gelu),
  geluTanh: one(geluTanh),
  silu: one(silu),
  softplus: one(softplus),
  square: one((x) => times(x, x)),
  add: ([a, b]) => add(a!, b!),
  sub: ([a, b]) => sub(a!, b!),
  mul: ([a, b]) => mul(a!, b!),
  div: ([a, b]) => mul(a!, raised(asNode(b!), -1)),
  fma: ([a, b, c]) => add(mul(a!, b!), c!),
  /** Of positive bases, where the exponent is no number. */
  pow: ([a, b]) => (typeof b === "number" ? raised(asNode(a!), b) : exp(mul(b!, log(asNode(a!))))),
  maximum: choice((a, b) => a > b),
  minimum: choice((a, b) => a < b),
  eq: compared((a, b) => a === b),
  ne: compared((a, b) => a !== b),
  lt: compared((a, b) => a < b),
  le: compared((a, b) => a <= b),
  gt: compared((a, b) => a > b),
  ge: compared((a, b) => a >= b),
  less: compared((a, b) => a < b),
  where: ([condition, a, b]) => where(asNode(condition!), a!, b!),
  select: ([condition, a, b]) => where(asNode(condition!), a!, b!),
  maskedFill: ([x, filledWhere], { value }) => where(asNode(filledWhere!), value as number, x!),
  clamp: ([x], { low = null, high = null }) => clamp(asNode(x!), low as number | null, high as number | null),
  to: ([x], { dtype }) => cast(asNode(x!), dtype as string),
};

function cast(x: Node, dtype: string): Node {
  if (dtype === "bool") return mask(x, (v) => v !== 0);
  if (dtype === "i32" || dtype === "u8") return constant({ shape: x.shape, data: x.data.map(Math.trunc) });
  mustHold(/^(f|bf)\d+$/.test(dtype), `a dtype, got ${dtype}`);
  return x;
}
