/** Sums of numbers that are stored as logarithms. */

import type { Expression } from "../../rule/expression";
import { abs, add, div, exp, less, log1p, maximum, mul, neg, sub, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { steadyLogistic } from "./activations";
import { elementwise } from "./elementwise";
import { type ElementwiseDefinition, extended, ifEqual } from "./elementwise-table";

type E = Expression;

/** How far b is above a: where both are the same infinity, 0, so that each gets half of the gradient. */
function difference(a: E, b: E): E {
  const above = sub(b, a);
  return where(less(abs(a), Number.POSITIVE_INFINITY), above, ifEqual(a, b, 0, above));
}

const share = (g: E, a: E, b: E) => div(g, add(1, exp(difference(a, b))));
const steadyShare = (g: E, a: E, b: E) => mul(g, steadyLogistic(neg(difference(a, b))));

const LOGADDEXP: ElementwiseDefinition = {
  forward: (a, b) => ifEqual(a!, b!, add(a!, Math.LN2), add(maximum(a!, b!), log1p(exp(neg(abs(sub(a!, b!))))))),
  derivatives: [(g, _y, a, b) => share(g, a!, b!), (g, _y, a, b) => share(g, b!, a!)],
  recorded: [(g, _y, a, b) => steadyShare(g, a!, b!), (g, _y, a, b) => steadyShare(g, b!, a!)],
  result: "float",
};

/**
 * log(exp(a) + exp(b)), elementwise and broadcast, without overflow. Where both are the same infinity, each gets half of the gradient
 * (PyTorch gives NaN).
 *
 * @throws OptError BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT, BAD_DTYPE
 * @example
 * logaddexp(tensor([1000, 0]), tensor([1000, -Infinity])); // [1000.6931, 0]
 */
export function logaddexp(a: Tensor | number, b: Tensor | number): Tensor {
  return elementwise(extended("logaddexp", LOGADDEXP), [a, b]);
}
