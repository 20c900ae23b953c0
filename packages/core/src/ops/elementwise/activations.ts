/** Activations that only those ship who use them: each is one launch, and so is its gradient. */

import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import type { Expression } from "../../rule/expression";
import { abs, add, div, exp, less, log, max, mul, neg, select, sub } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { checkTensor } from "../check-tensor";
import { elementwise } from "./elementwise";
import { type ElementwiseDefinition, extended } from "./elementwise-table";

type E = Expression;

const logistic = (x: E) => div(1, add(1, exp(neg(x))));

const SILU: ElementwiseDefinition = {
  forward: (x) => div(x!, add(1, exp(neg(x!)))),
  derivatives: [(g, _y, x) => mul(g, mul(logistic(x!), add(1, mul(x!, sub(1, logistic(x!))))))],
  result: "float",
};

const LEAKY_RELU: ElementwiseDefinition = {
  forward: (x, slope) => select(less(0, x!), x!, mul(x!, slope!)),
  derivatives: [(g, _y, x, slope) => select(less(0, x!), g, mul(g, slope!)), null],
};

/** log(1 + u) for u >= 0, with all digits of a small u: the rounding of 1 + u is divided out (Kahan). */
function logOfMore(u: E): E {
  const rounded = sub(add(1, u), 1);
  return select(less(0, rounded), mul(log(add(1, u)), div(u, rounded)), u);
}

const SOFTPLUS: ElementwiseDefinition = {
  forward(x, beta, threshold) {
    const z = mul(x!, beta!);
    const soft = div(add(max(z, 0), logOfMore(exp(neg(abs(z))))), beta!);
    return select(less(threshold!, z), x!, soft);
  },
  derivatives: [
    (g, _y, x, beta, threshold) => select(less(threshold!, mul(x!, beta!)), g, mul(g, logistic(mul(x!, beta!)))),
    null,
    null,
  ],
  result: "float",
};

/**
 * x / (1 + exp(-x)), also called swish (Hendrycks & Gimpel 2016).
 *
 * @example
 * silu(tensor([0, 1])); // [0, 0.7311]
 */
export function silu(x: Tensor): Tensor {
  checkTensor("silu", x);
  return elementwise(extended("silu", SILU), [x]);
}

/**
 * x where it is positive, elsewhere x * slope.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * leakyRelu(tensor([-2, 3])); // [-0.02, 3]
 */
export function leakyRelu(x: Tensor, slope = 0.01): Tensor {
  checkTensor("leakyRelu", x);
  checkNumber("leakyRelu", "slope", slope);
  return elementwise(extended("leakyRelu", LEAKY_RELU), [x, slope]);
}

/**
 * log(1 + exp(beta x)) / beta, and x where beta x is above the threshold.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * softplus(tensor([0, 30])); // [0.6931, 30]
 */
export function softplus(x: Tensor, beta = 1, threshold = 20): Tensor {
  checkTensor("softplus", x);
  checkNumber("softplus", "beta", beta);
  checkNumber("softplus", "threshold", threshold);
  return elementwise(extended("softplus", SOFTPLUS), [x, beta, threshold]);
}

function checkNumber(where: string, name: string, value: unknown): void {
  check(typeof value === "number", "BAD_ARGUMENT", where, () => `${name} must be a number, got ${show(value)}.`);
}
