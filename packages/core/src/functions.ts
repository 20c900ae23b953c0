/**
 * The ops as functions. They take symbols (inside rules), tensors, or a mix of one of them with numbers;
 * a rule evaluated on tensors therefore is a differentiable step.
 */
import { check } from "./errors";
import { elementwise, maxOver } from "./ops";
import type { Op, Operand } from "./rule/expression";
import { applyOp, Expression } from "./rule/expression";
import { Tensor } from "./tensor";

type Unary = <T extends Operand>(x: T) => T;
type Binary = <T extends Operand>(a: T | number, b: T | number) => T;
type Ternary = <T extends Operand>(a: T | number, b: T | number, c: T | number) => T;

const applied =
  (op: Op) =>
  <T extends Operand>(...operands: (T | number)[]): T =>
    applyOp<T>(op, operands);

export const add: Binary = /* @__PURE__ */ applied("add");
export const sub: Binary = /* @__PURE__ */ applied("sub");
export const mul: Binary = /* @__PURE__ */ applied("mul");
export const div: Binary = /* @__PURE__ */ applied("div");
export const neg: Unary = /* @__PURE__ */ applied("neg");
export const abs: Unary = /* @__PURE__ */ applied("abs");
export const sqrt: Unary = /* @__PURE__ */ applied("sqrt");
/** a * b + c, rounded once. */
export const fma: Ternary = /* @__PURE__ */ applied("fma");
/** `b < a ? b : a`: only a NaN in a survives; `minimum` lets both through. */
export const min: Binary = /* @__PURE__ */ applied("min");
/** The condition a < b. */
export const less: Binary = /* @__PURE__ */ applied("less");
/** `condition ? a : b`. */
export const select: Ternary = /* @__PURE__ */ applied("select");
export const exp: Unary = /* @__PURE__ */ applied("exp");
export const log: Unary = /* @__PURE__ */ applied("log");
export const tanh: Unary = /* @__PURE__ */ applied("tanh");
/** The error function. */
export const erf: Unary = /* @__PURE__ */ applied("erf");
export const sin: Unary = /* @__PURE__ */ applied("sin");
export const cos: Unary = /* @__PURE__ */ applied("cos");
export const pow: Binary = /* @__PURE__ */ applied("pow");

/** `a < b ? b : a`: only a NaN in a survives, so write `max(new, old)`; `maximum` lets both through. */
export function max<T extends Operand>(a: T | number, b: T | number): T;
/** The largest value over axes. */
export function max(x: Tensor, axis?: number | readonly number[], keepDim?: boolean): Tensor;
export function max(a: Operand | number, b?: Operand | number | readonly number[], keepDim?: boolean): Operand {
  const isElementwise =
    b instanceof Tensor || b instanceof Expression || a instanceof Expression || typeof a === "number";
  if (isElementwise) return applyOp<Operand>("max", [a, b as Operand | number]);
  check(
    a instanceof Tensor,
    "BAD_ARGUMENT",
    "max",
    () => `needs a tensor or expressions, got ${typeof a}.`,
    "Wrap data with tensor(data).",
  );
  return maxOver(a, b as number | readonly number[] | undefined, keepDim);
}

/** 1 / (1 + exp(-x)) */
export const sigmoid = (x: Tensor): Tensor => elementwise("sigmoid", [x]);
/** max(x, 0) */
export const relu = (x: Tensor): Tensor => elementwise("relu", [x]);
/** x * (1 + erf(x / sqrt(2))) / 2 */
export const gelu = (x: Tensor): Tensor => elementwise("gelu", [x]);
export const maximum = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("maximum", [a, b]);
export const minimum = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("minimum", [a, b]);
export const sum = (x: Tensor, axis?: number | readonly number[], keepDim = false): Tensor => x.sum(axis, keepDim);
export const mean = (x: Tensor, axis?: number | readonly number[], keepDim = false): Tensor => x.mean(axis, keepDim);
export const argmax = (x: Tensor, axis?: number, keepDim = false): Tensor => x.argmax(axis, keepDim);
export const matmul = (a: Tensor, b: Tensor, options: { transposeA?: boolean; transposeB?: boolean } = {}): Tensor =>
  a.matmul(b, options);
export const reshape = (x: Tensor, shape: readonly number[]): Tensor => x.reshape(shape);
export const transpose = (x: Tensor, a = -2, b = -1): Tensor => x.transpose(a, b);
export const permute = (x: Tensor, axes: readonly number[]): Tensor => x.permute(axes);
export const slice = (x: Tensor, start: number, end?: number, axis = 0): Tensor => x.slice(start, end, axis);
export const softmax = (x: Tensor, axis = -1): Tensor => x.softmax(axis);
export const logSoftmax = (x: Tensor, axis = -1): Tensor => x.logSoftmax(axis);
