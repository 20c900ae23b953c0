/** What losses compute for each element, where a composition of ops would have another gradient or many launches. */

import type { Expression } from "../../rule/expression";
import { abs, add, div, exp, less, log, maximum, mul, neg, sub, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { checkTensor } from "../check-tensor";
import type { ElementwiseDefinition } from "../definition";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

type E = Expression;

/** log(1 - p), with all digits of a small p (Kahan). */
function logOfRest(p: E): E {
  const rounded = sub(1, sub(1, p));
  return where(less(0, abs(rounded)), mul(log(sub(1, p)), div(p, where(less(0, abs(rounded)), rounded, 1))), neg(p));
}

/** PyTorch's bound of both logarithms, and what it divides by where a probability is 0 or 1: 1e-12 in float32. */
const LEAST_LOG = -100;
const LEAST_VARIANCE = 9.999999960041972e-13;

const BINARY_CROSS_ENTROPY: ElementwiseDefinition = {
  forward: (p, y) => sub(mul(sub(y!, 1), maximum(logOfRest(p!), LEAST_LOG)), mul(y!, maximum(log(p!), LEAST_LOG))),
  gradients: [
    (g, _y, p, y) => mul(g, div(sub(p!, y!), maximum(mul(sub(1, p!), p!), LEAST_VARIANCE))),
    (g, _y, p) => mul(g, sub(maximum(logOfRest(p!), LEAST_LOG), maximum(log(p!), LEAST_LOG))),
  ],
};

/** -(y log p + (1 - y) log(1 - p)) of each element, with logarithms of at least -100. */
export function binaryCrossEntropyTerms(p: Tensor, y: Tensor): Tensor {
  checkTensor("binaryCrossEntropyTerms", p, "the probabilities");
  checkTensor("binaryCrossEntropyTerms", y, "the targets");
  return elementwise(extended("binaryCrossEntropy", BINARY_CROSS_ENTROPY), [p, y]);
}

export const LOG_ADD_EXP: ElementwiseDefinition = {
  forward(a, b, c) {
    const largest = maximum(maximum(a!, b!), c!);
    const part = (x: E) => exp(sub(x, largest));
    return add(largest, log(add(add(part(a!), part(b!)), part(c!))));
  },
  gradients: [
    (g, y, a) => mul(g, exp(sub(a!, y))),
    (g, y, _a, b) => mul(g, exp(sub(b!, y))),
    (g, y, _a, _b, c) => mul(g, exp(sub(c!, y))),
  ],
};

/** log(exp(a) + exp(b) + exp(c)) of finite numbers. */
export function logAddExp3(a: Tensor, b: Tensor, c: Tensor | number): Tensor {
  return elementwise(extended("logAddExp3", LOG_ADD_EXP), [a, b, c]);
}
