/** The ops as functions of symbols or tensors, or of one of them with numbers: what rules and the definitions of elementwise ops are written with. */
import { applyOp, type Op, type Operand } from "./expression";

/** An op of one operand: a symbol of a rule, or a tensor. */
export type Unary = <T extends Operand>(x: T) => T;
/** An op of two operands, of which one may be a number. */
export type Binary = <T extends Operand>(a: T | number, b: T | number) => T;
/** An op of three operands, of which some may be numbers. */
export type Ternary = <T extends Operand>(a: T | number, b: T | number, c: T | number) => T;

const applied =
  (op: Op) =>
  <T extends Operand>(...operands: (T | number)[]): T =>
    applyOp<T>(op, operands);

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
/** `b < a ? b : a`, of each pair: only a NaN in a survives; `minimum` lets both through. */
export const min: Binary = /* @__PURE__ */ applied("min");
/** The condition a < b. */
export const less: Binary = /* @__PURE__ */ applied("less");
/** `condition ? a : b`. */
export const select: Ternary = /* @__PURE__ */ applied("select");
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

/** `a < b ? b : a`, of each pair: only a NaN in a survives, so write `max(new, old)`; `maximum` lets both through. The largest of one tensor is `x.max()`. */
export const max: Binary = /* @__PURE__ */ applied("max");
