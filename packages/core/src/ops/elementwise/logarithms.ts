/** Logarithms and powers of other bases. */
import type { Expression } from "../../rule/expression";
import { abs, add, div, exp, less, log, log1p, maximum, mul, neg, pow, sub, where } from "../../rule/symbols";
import { steadyLogistic } from "./activations";
import { ifEqual, ifNumber, zeroOrNaN } from "./conditions";
import { defineOp } from "./define-op";
import { nearest } from "./round";

type E = Expression;

/** The logarithm of a base, exact where x is a power of it. */
function logOf(base: number, x: E, whole: E): E {
  const y = mul(log(x), 1 / Math.log(base));
  const power = nearest(y, whole);
  return ifEqual(pow(base, power), x, power, y);
}

/**
 * The logarithm to the base 2.
 *
 * @example
 * log2(tensor([8, 0.5])); // [3, -1]
 */
export const log2 = /* @__PURE__ */ defineOp({
  name: "log2",
  torch: "torch.log2(a)",
  inputs: 1,
  domain: { positive: true },
  forward: (x, whole) => logOf(2, x!, whole!),
  gradients: [(g, _y, x) => div(g, mul(x!, Math.LN2))],
  rounds: true,
});

/**
 * The logarithm to the base 10.
 *
 * @example
 * log10(tensor([1000, 0.1])); // [3, -1]
 */
export const log10 = /* @__PURE__ */ defineOp({
  name: "log10",
  torch: "torch.log10(a)",
  inputs: 1,
  domain: { positive: true },
  forward: (x, whole) => logOf(10, x!, whole!),
  gradients: [(g, _y, x) => div(g, mul(x!, Math.LN10))],
  rounds: true,
});

/**
 * 2^x.
 *
 * @example
 * exp2(tensor([3, -1])); // [8, 0.5]
 */
export const exp2 = /* @__PURE__ */ defineOp({
  name: "exp2",
  torch: "torch.exp2(a)",
  inputs: 1,
  forward: (x) => pow(2, x!),
  gradients: [(g, y) => mul(g, mul(y, Math.LN2))],
});

/** `yes` where x is 0, and NaN where it is NaN. */
const ifZero = (x: E, yes: E | number, no: E | number) =>
  where(less(x, 0), no, where(less(0, x), no, where(less(x, 1), yes, x)));

/**
 * a log(b), and 0 where a is 0 and b is a number.
 *
 * @example
 * xlogy(tensor([0, 2]), tensor([0, 1])); // [0, 0]
 */
export const xlogy = /* @__PURE__ */ defineOp({
  name: "xlogy",
  torch: "torch.xlogy(a, b)",
  inputs: 2,
  domain: { positive: true, finite: true },
  forward: (a, b) => ifNumber(b!, ifZero(a!, 0, mul(a!, log(b!))), b!),
  gradients: [
    (g, _y, a, b) => mul(g, ifZero(a!, where(less(0, b!), log(b!), zeroOrNaN(b!)), log(b!))),
    (g, _y, a, b) => mul(g, div(a!, b!)),
  ],
});

/**
 * log(x / (1 - x)): the inverse of sigmoid. Clamp x first where it may be 0 or 1.
 *
 * @example
 * logit(tensor([0.5, 0.75])); // [0, 1.0986]
 */
export const logit = /* @__PURE__ */ defineOp({
  name: "logit",
  torch: "torch.logit(a)",
  inputs: 1,
  domain: { low: 0.05, high: 0.95, finite: true },
  forward: (x) => log(div(x!, sub(1, x!))),
  gradients: [(g, _y, x) => div(g, mul(x!, sub(1, x!)))],
});

/** How far b is above a: where both are the same infinity, 0, so that each gets half of the gradient. */
function difference(a: E, b: E): E {
  const above = sub(b, a);
  return where(less(abs(a), Number.POSITIVE_INFINITY), above, ifEqual(a, b, 0, above));
}

const share = (g: E, a: E, b: E) => div(g, add(1, exp(difference(a, b))));
const steadyShare = (g: E, a: E, b: E) => mul(g, steadyLogistic(neg(difference(a, b))));

/**
 * log(exp(a) + exp(b)), elementwise and broadcast, without overflow. Where both are the same infinity, each gets half of the gradient
 * (PyTorch gives NaN).
 *
 * @example
 * logaddexp(tensor([1000, 0]), tensor([1000, -Infinity])); // [1000.6931, 0]
 */
export const logaddexp = /* @__PURE__ */ defineOp({
  name: "logaddexp",
  torch: "torch.logaddexp(a, b)",
  inputs: 2,
  domain: { finite: true },
  forward: (a, b) => ifEqual(a!, b!, add(a!, Math.LN2), add(maximum(a!, b!), log1p(exp(neg(abs(sub(a!, b!))))))),
  gradients: [(g, _y, a, b) => share(g, a!, b!), (g, _y, a, b) => share(g, b!, a!)],
  recorded: [(g, _y, a, b) => steadyShare(g, a!, b!), (g, _y, a, b) => steadyShare(g, b!, a!)],
});
