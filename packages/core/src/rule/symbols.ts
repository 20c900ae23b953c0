/** The ops as functions of expressions: what rules and the definitions of elementwise ops are written with. */
import { applyOp, type Expression, type Op } from "./expression";

type Term = Expression | number;
type Unary = (x: Term) => Expression;
type Binary = (a: Term, b: Term) => Expression;
type Ternary = (a: Term, b: Term, c: Term) => Expression;

const build =
  (op: Op) =>
  (...terms: Term[]): Expression =>
    applyOp<Expression>(op, terms);

export const add: Binary = build("add");
export const sub: Binary = build("sub");
export const mul: Binary = build("mul");
export const div: Binary = build("div");
export const neg: Unary = build("neg");
export const abs: Unary = build("abs");
export const sqrt: Unary = build("sqrt");
export const fma: Ternary = build("fma");
export const max: Binary = build("max");
export const min: Binary = build("min");
export const less: Binary = build("less");
export const select: Ternary = build("select");
export const exp: Unary = build("exp");
export const log: Unary = build("log");
export const tanh: Unary = build("tanh");
export const erf: Unary = build("erf");
export const sin: Unary = build("sin");
export const cos: Unary = build("cos");
export const pow: Binary = build("pow");
