/** The ops as functions of symbols or tensors, or of one of them with numbers: what rules and the definitions of elementwise ops are written with. */
import { applyOp, type Operand, type OpName } from "./expression";

/** An op of one operand: a symbol of a rule, or a tensor. */
export type Unary = <T extends Operand>(x: T) => T;
/** An op of two operands, of which one may be a number. */
export type Binary = <T extends Operand>(a: T | number, b: T | number) => T;
/** An op of three operands, of which some may be numbers. */
export type Ternary = <T extends Operand>(a: T | number, b: T | number, c: T | number) => T;

const applied =
  (name: OpName) =>
  <T extends Operand>(...operands: (T | number)[]): T =>
    applyOp<T>(name, operands);

/** a + b. */
export const add: Binary = /* @__PURE__ */ applied("add");
/** a - b. */
export const sub: Binary = /* @__PURE__ */ applied("sub");
/** a * b, of each pair. */
export const mul: Binary = /* @__PURE__ */ applied("mul");
/** a / b. */
export const div: Binary = /* @__PURE__ */ applied("div");
/** -x. */
export const neg: Unary = /* @__PURE__ */ applied("neg");
/** |x|. */
export const abs: Unary = /* @__PURE__ */ applied("abs");
/** The square root of x, rounded to nearest on exact devices. */
export const sqrt: Unary = /* @__PURE__ */ applied("sqrt");
/** a * b + c, rounded once. */
export const fma: Ternary = /* @__PURE__ */ applied("fma");
/** The larger of each pair; NaN if either is. In a rule it is `a < b ? b : a`: only a NaN in a survives, so write `maximum(new, old)`. */
export const maximum: Binary = /* @__PURE__ */ applied("maximum");
/** The smaller of each pair; NaN if either is. In a rule it is `b < a ? b : a`: only a NaN in a survives. */
export const minimum: Binary = /* @__PURE__ */ applied("minimum");
/** The condition a < b. */
export const less: Binary = /* @__PURE__ */ applied("less");
/**
 * `condition ? a : b`, elementwise and broadcast. The condition has no gradient.
 *
 * @throws OptError BAD_DTYPE for a condition that is not bool; BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const x = tensor([-1, 2]);
 * where(x.lt(0), 0, x); // [0, 2]
 */
export const where: <T extends Operand>(condition: T, a: T | number, b: T | number) => T =
  /* @__PURE__ */ applied("where");
/** e^x. */
export const exp: Unary = /* @__PURE__ */ applied("exp");
/** The natural logarithm of x. */
export const log: Unary = /* @__PURE__ */ applied("log");
/** The hyperbolic tangent of x. */
export const tanh: Unary = /* @__PURE__ */ applied("tanh");
/** The error function. */
export const erf: Unary = /* @__PURE__ */ applied("erf");
/** The sine of x, in radians. */
export const sin: Unary = /* @__PURE__ */ applied("sin");
/** The cosine of x, in radians. */
export const cos: Unary = /* @__PURE__ */ applied("cos");
/** a^b. */
export const pow: Binary = /* @__PURE__ */ applied("pow");
/** log(1 + x), with all digits of a small x. */
export const log1p: Unary = /* @__PURE__ */ applied("log1p");
/** e^x - 1, with all digits of a small x. */
export const expm1: Unary = /* @__PURE__ */ applied("expm1");
