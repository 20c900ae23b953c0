/**
 * The ops as functions. They take symbols (inside rules), tensors, or a mix of one of them with numbers;
 * a rule evaluated on tensors therefore is a differentiable step.
 */
import { elementwise, softmax as softmaxOf } from "./ops";
import type { Op, Operand } from "./rule/expression";
import { applyOp } from "./rule/expression";
import type { Tensor } from "./tensor/tensor";

export {
  argmax,
  argmin,
  clamp,
  cumsum,
  expand,
  type GeluOptions,
  gatherAlong,
  gelu,
  leakyRelu,
  maskedFill,
  mean,
  norm,
  oneHot,
  pad,
  permute,
  reshape,
  silu,
  slice,
  softplus,
  split,
  squeeze,
  stack,
  std,
  sum,
  topk,
  transpose,
  tril,
  triu,
  unsqueeze,
  variance,
  where,
} from "./ops";
export { matmul } from "./tensor-methods";

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

/** 1 / (1 + exp(-x)) */
export const sigmoid = (x: Tensor): Tensor => elementwise("sigmoid", [x]);
/** max(x, 0) */
export const relu = (x: Tensor): Tensor => elementwise("relu", [x]);
/** The larger of each pair; NaN if either is. */
export const maximum = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("maximum", [a, b]);
/** The smaller of each pair; NaN if either is. */
export const minimum = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("minimum", [a, b]);
/** exp(x) / sum(exp(x)) over an axis. */
export const softmax = (x: Tensor, axis = -1): Tensor => softmaxOf(x, axis, false);
/** log(exp(x) / sum(exp(x))) over an axis. */
export const logSoftmax = (x: Tensor, axis = -1): Tensor => softmaxOf(x, axis, true);
/** 1 where equal, 0 elsewhere, as bool: NaN equals nothing. */
export const eq = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("eq", [a, b]);
/** Where they differ, as bool: also where one is NaN. */
export const ne = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("ne", [a, b]);
/** a < b, as bool. */
export const lt = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("less", [a, b]);
/** a <= b, as bool. */
export const le = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("le", [a, b]);
/** a > b, as bool. */
export const gt = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("less", [b, a]);
/** a >= b, as bool. */
export const ge = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("le", [b, a]);
