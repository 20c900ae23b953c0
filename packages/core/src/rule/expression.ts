/** Expressions: what a rule or a map computes for one element. */
import { check } from "../errors/errors";
import { show } from "../errors/show";

/** The ops of rules: the same bits on every exact device. */
export const RULE_OPS = [
  "add",
  "sub",
  "mul",
  "div",
  "neg",
  "abs",
  "sqrt",
  "fma",
  "max",
  "min",
  "less",
  "select",
] as const;

/** The further ops of maps: of float32 the functions of functions/, within 1 ulp; of float64 the platform's. */
export const TRANSCENDENTAL_OPS = ["exp", "log", "tanh", "erf", "sin", "cos", "pow", "log1p", "expm1"] as const;

/** Moves of bits, of which the definitions of functions are made beside rule ops: see functions/parts.ts. */
const BIT_OPS = ["flipsign", "power2", "exponent", "significand"] as const;

export type RuleOp = (typeof RULE_OPS)[number];
export type Op = RuleOp | (typeof TRANSCENDENTAL_OPS)[number];
export type BitOp = (typeof BIT_OPS)[number];

/** Functions that programs store under other names: hashes of rules contain those. */
const NODES = { maximum: "max", minimum: "min", where: "select" } as const;

/** The name of an op as a function, which is PyTorch's. */
export type OpName = Exclude<Op, (typeof NODES)[keyof typeof NODES]> | keyof typeof NODES;

/** The op that a program stores for a function. */
export function nodeOf(name: OpName): Op {
  return NODES[name as keyof typeof NODES] ?? name;
}

/** Whether an op is one of `TRANSCENDENTAL_OPS`. */
export function isTranscendental(op: string): op is (typeof TRANSCENDENTAL_OPS)[number] {
  return (TRANSCENDENTAL_OPS as readonly string[]).includes(op);
}

/** Number of operands of each op. */
export const ARITY: Readonly<Record<Op, number>> = {
  add: 2,
  sub: 2,
  mul: 2,
  div: 2,
  neg: 1,
  abs: 1,
  sqrt: 1,
  fma: 3,
  max: 2,
  min: 2,
  less: 2,
  select: 3,
  exp: 1,
  log: 1,
  tanh: 1,
  erf: 1,
  sin: 1,
  cos: 1,
  pow: 2,
  log1p: 1,
  expm1: 1,
};

/** The method by which operands carry out an op: symbols build an expression, tensors compute. */
export const operate: unique symbol = Symbol.for("@opt/core.operate");

/** What the ops below work on: expressions and tensors. */
export interface Operand {
  [operate](name: OpName, operands: readonly (Operand | number)[]): Operand;
}

/** A symbol of an update rule, from which every device compiles its kernel. */
export class Expression implements Operand {
  constructor(
    readonly op: Op | BitOp | "buffer" | "scalar" | "constant",
    readonly args: readonly Expression[],
    /** Slot of a buffer or scalar, value of a constant. */
    readonly value = 0,
  ) {}

  static constant(value: number): Expression {
    return new Expression("constant", [], value);
  }

  /** `less` gives a condition, everything else a number. */
  get isCondition(): boolean {
    return this.op === "less";
  }

  [operate](name: OpName, operands: readonly (Operand | number)[]): Expression {
    const op = nodeOf(name);
    const args = operands.map((operand) => (typeof operand === "number" ? Expression.constant(operand) : operand));
    args.forEach((arg, i) => {
      checkOperand(arg instanceof Expression, name, i, arg);
      const wantsCondition = op === "select" && i === 0;
      check(
        (arg as Expression).isCondition === wantsCondition,
        "BAD_ARGUMENT",
        name,
        () => `operand ${i} must be ${wantsCondition ? "a condition, got a number" : "a number, got a condition"}.`,
        "Use where(less(a, b), x, y).",
      );
    });
    return new Expression(op, args as Expression[]);
  }
}

function checkOperand(fits: boolean, name: OpName, position: number, operand: unknown): void {
  check(
    fits,
    "BAD_ARGUMENT",
    name,
    () => `operand ${position} must be an expression or a number, got ${show(operand)}.`,
    "Check names of buffers and scalars, and do not mix tensors with symbols.",
  );
}

function isOperand(value: unknown): value is Operand {
  return typeof value === "object" && value !== null && operate in value;
}

/** Applies an op to symbols, tensors or numbers (numbers alone stay symbolic constants). */
export function applyOp<T extends Operand>(name: OpName, operands: readonly (T | number)[]): T {
  const arity = ARITY[nodeOf(name)];
  check(operands.length === arity, "BAD_ARGUMENT", name, () => `takes ${arity} operands, got ${operands.length}.`);
  let leader: Operand | undefined;
  operands.forEach((operand, i) => {
    if (isOperand(operand)) leader ??= operand;
    else checkOperand(typeof operand === "number", name, i, operand);
  });
  return (leader ?? Expression.constant(0))[operate](name, operands) as T;
}
