/** The ops that rules have, as functions of symbols or tensors, with their gradients: formulas of all other elementwise ops are made of them. */
import type { Expression } from "../../rule/expression";
import * as rule from "../../rule/symbols";
import type { ElementwiseDefinition, OpDefinition } from "../definition";
import { ifEqual, ifZero, nanOf, zeroOrNaN } from "./conditions";

type E = Expression;

/** It has as many operands as gradients, and the forward of rules if none is given. */
type RuleOpDefinition = Omit<OpDefinition, "inputs" | "forward"> & Partial<OpDefinition>;

/** The function of symbols and tensors, of which the definition is that of tensors. */
function defineRuleOp<Op extends object>(op: Op, given: RuleOpDefinition): Op {
  const definition = { forward: op as unknown as ElementwiseDefinition["forward"], ...given };
  RULE_OPS[given.name] = definition;
  return Object.assign(op, { definition });
}

const TWO_OVER_SQRT_PI = 2 / Math.sqrt(Math.PI);

/** g where the first operand is larger or one is NaN, half of it where they are equal. */
const whereLarger = (g: E, _y: E, a: E, b: E) => rule.where(rule.less(a, b), 0, ifEqual(a, b, rule.mul(0.5, g), g));
const whereSmaller = (g: E, y: E, a: E, b: E) => whereLarger(g, y, b, a);

const integers = { result: "integer" } as const;

/** The launches of these ops by their names, and what programs call `max`, `min` and `select`, whose condition is any number. */
export const RULE_OPS: Record<string, ElementwiseDefinition> = {
  max: { forward: (a, b) => rule.maximum(a!, b!), gradients: [whereLarger, whereSmaller], ...integers },
  min: { forward: (a, b) => rule.minimum(a!, b!), gradients: [whereSmaller, whereLarger], ...integers },
  select: {
    forward: (condition, a, b) => ifZero(condition!, b!, a!),
    gradients: [null, (g, _y, condition) => ifZero(condition!, 0, g), (g, _y, condition) => ifZero(condition!, g, 0)],
    ...integers,
  },
};

/** a + b. */
export const add = defineRuleOp(rule.add, {
  name: "add",
  torch: "a + b",
  gradients: [(g) => g, (g) => g],
  result: "integer",
});

/** a - b. */
export const sub = defineRuleOp(rule.sub, {
  name: "sub",
  torch: "a - b",
  gradients: [(g) => g, (g) => rule.neg(g)],
  result: "integer",
});

/** a * b, of each pair. */
export const mul = defineRuleOp(rule.mul, {
  name: "mul",
  torch: "a * b",
  gradients: [(g, _y, _a, b) => rule.mul(g, b!), (g, _y, a) => rule.mul(g, a!)],
  result: "integer",
});

/** a / b. */
export const div = defineRuleOp(rule.div, {
  name: "div",
  torch: "a / b",
  domain: { positive: true },
  gradients: [(g, _y, _a, b) => rule.div(g, b!), (g, y, _a, b) => rule.neg(rule.div(rule.mul(g, y), b!))],
});

/** -x. */
export const neg = defineRuleOp(rule.neg, {
  name: "neg",
  torch: "-a",
  gradients: [(g) => rule.neg(g)],
  result: "integer",
});

/** |x|. */
export const abs = defineRuleOp(rule.abs, {
  name: "abs",
  torch: "a.abs()",
  gradients: [(g, _y, x) => rule.mul(g, rule.where(rule.less(x!, 0), -1, ifZero(x!, 0, 1)))],
  flat: [0],
  result: "integer",
});

/** The square root of x, rounded to nearest on exact devices. */
export const sqrt = defineRuleOp(rule.sqrt, {
  name: "sqrt",
  torch: "a.sqrt()",
  domain: { positive: true },
  gradients: [(g, y) => rule.div(g, rule.mul(2, y))],
});

/** a * b + c, rounded once. */
export const fma = defineRuleOp(rule.fma, {
  name: "fma",
  torch: "a * b + c",
  gradients: [(g, _y, _a, b) => rule.mul(g, b!), (g, _y, a) => rule.mul(g, a!), (g) => g],
  result: "integer",
});

/** The larger of each pair; NaN if either is. In a rule it is `a < b ? b : a`: only a NaN in a survives, so write `maximum(new, old)`. */
export const maximum = defineRuleOp(rule.maximum, {
  name: "maximum",
  torch: "torch.maximum(a, b)",
  forward: (a, b) => nanOf(b!, rule.maximum(a!, b!)),
  gradients: [whereLarger, whereSmaller],
  result: "integer",
});

/** The smaller of each pair; NaN if either is. In a rule it is `b < a ? b : a`: only a NaN in a survives. */
export const minimum = defineRuleOp(rule.minimum, {
  name: "minimum",
  torch: "torch.minimum(a, b)",
  forward: (a, b) => nanOf(b!, rule.minimum(a!, b!)),
  gradients: [whereSmaller, whereLarger],
  result: "integer",
});

/** The condition a < b. */
export const less = defineRuleOp(rule.less, {
  name: "less",
  torch: "a < b",
  forward: (a, b) => rule.where(rule.less(a!, b!), 1, 0),
  gradients: [null, null],
  result: "bool",
});

/** e^x. */
export const exp = defineRuleOp(rule.exp, {
  name: "exp",
  torch: "a.exp()",
  gradients: [(g, y) => rule.mul(g, y)],
  autocast: "f32",
});

/** The natural logarithm of x. */
export const log = defineRuleOp(rule.log, {
  name: "log",
  torch: "a.log()",
  domain: { positive: true },
  gradients: [(g, _y, x) => rule.div(g, x!)],
  autocast: "f32",
});

/** The hyperbolic tangent of x. */
export const tanh = defineRuleOp(rule.tanh, {
  name: "tanh",
  torch: "a.tanh()",
  gradients: [(g, y) => rule.mul(g, rule.sub(1, rule.mul(y, y)))],
});

/** The error function. */
export const erf = defineRuleOp(rule.erf, {
  name: "erf",
  torch: "torch.erf(a)",
  gradients: [(g, _y, x) => rule.mul(g, rule.mul(TWO_OVER_SQRT_PI, rule.exp(rule.neg(rule.mul(x!, x!)))))],
});

/** The sine of x, in radians. */
export const sin = defineRuleOp(rule.sin, {
  name: "sin",
  torch: "a.sin()",
  gradients: [(g, _y, x) => rule.mul(g, rule.cos(x!))],
});

/** The cosine of x, in radians. */
export const cos = defineRuleOp(rule.cos, {
  name: "cos",
  torch: "a.cos()",
  gradients: [(g, _y, x) => rule.neg(rule.mul(g, rule.sin(x!)))],
});

const powerSlope = (a: E, b: E) => rule.mul(b, rule.pow(a, rule.sub(b, 1)));

/** a^b. */
export const pow = defineRuleOp(rule.pow, {
  name: "pow",
  torch: "a ** b",
  domain: { positive: true },
  gradients: [
    (g, _y, a, b) => ifZero(b!, b!, rule.mul(g, powerSlope(a!, b!))),
    (g, y, a, b) => {
      const slope = rule.mul(y, rule.log(a!));
      return rule.mul(g, rule.where(rule.less(b!, 0), slope, ifZero(a!, a!, slope)));
    },
  ],
  recorded: [
    (g, _y, a, b) => ifZero(b!, zeroOrNaN(b!), rule.mul(g, powerSlope(a!, b!))),
    (g, y, a, b) => {
      const slope = (a: E) => rule.mul(y, rule.log(a));
      const isNull = ifZero(a!, zeroOrNaN(a!), slope(ifZero(a!, 1, a!)));
      return rule.mul(g, rule.where(rule.less(b!, 0), slope(a!), isNull));
    },
  ],
  result: "integer",
  autocast: "f32",
});

/** log(1 + x), with all digits of a small x. */
export const log1p = defineRuleOp(rule.log1p, {
  name: "log1p",
  torch: "a.log1p()",
  domain: { positive: true },
  gradients: [(g, _y, x) => rule.div(g, rule.add(1, x!))],
  autocast: "f32",
});

/** e^x - 1, with all digits of a small x. */
export const expm1 = defineRuleOp(rule.expm1, {
  name: "expm1",
  torch: "a.expm1()",
  gradients: [(g, y) => rule.mul(g, rule.add(y, 1))],
  autocast: "f32",
});
