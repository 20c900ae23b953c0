/** The ops as functions of symbols: what core writes its own rules and the formulas of elementwise ops with. Users have those of tensors, too. */
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

export const add: Binary = /* @__PURE__ */ applied("add");
export const sub: Binary = /* @__PURE__ */ applied("sub");
export const mul: Binary = /* @__PURE__ */ applied("mul");
export const div: Binary = /* @__PURE__ */ applied("div");
export const neg: Unary = /* @__PURE__ */ applied("neg");
export const abs: Unary = /* @__PURE__ */ applied("abs");
export const sqrt: Unary = /* @__PURE__ */ applied("sqrt");
export const fma: Ternary = /* @__PURE__ */ applied("fma");
export const maximum: Binary = /* @__PURE__ */ applied("maximum");
export const minimum: Binary = /* @__PURE__ */ applied("minimum");
export const less: Binary = /* @__PURE__ */ applied("less");
export const where: <T extends Operand>(condition: T, a: T | number, b: T | number) => T =
  /* @__PURE__ */ applied("where");
export const exp: Unary = /* @__PURE__ */ applied("exp");
export const log: Unary = /* @__PURE__ */ applied("log");
export const tanh: Unary = /* @__PURE__ */ applied("tanh");
export const erf: Unary = /* @__PURE__ */ applied("erf");
export const sin: Unary = /* @__PURE__ */ applied("sin");
export const cos: Unary = /* @__PURE__ */ applied("cos");
export const pow: Binary = /* @__PURE__ */ applied("pow");
export const log1p: Unary = /* @__PURE__ */ applied("log1p");
export const expm1: Unary = /* @__PURE__ */ applied("expm1");
