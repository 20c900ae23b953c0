/** Activations: each is one launch, and so is its gradient. */

import { checkValue } from "../../errors/check-value";
import { checkOptions } from "../../errors/options";
import type { Expression } from "../../rule/expression";
import { abs, add, div, erf, exp, less, log, maximum, minimum, mul, neg, sub, tanh, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import type { ElementwiseDefinition } from "../definition";
import { defineOp } from "./define-op";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

type E = Expression;

const logistic = (x: E) => div(1, add(1, exp(neg(x))));

/** Below it exp(x) is the logistic function of x, of which 1 + exp(x) leaves no more even in float64. */
const LEAST = -80;

/** The same, of which no part overflows: its own gradient has no NaN. */
export const steadyLogistic = (x: E) => where(less(LEAST, x), logistic(maximum(x, LEAST)), exp(minimum(x, LEAST)));

const siluSlope = (curve: (x: E) => E) => (g: E, _y: E, x: E) =>
  mul(g, mul(curve(x), add(1, mul(x, sub(1, curve(x))))));

const LEAKY_RELU: ElementwiseDefinition = {
  forward: (x, slope) => where(less(0, x!), x!, mul(x!, slope!)),
  gradients: [(g, _y, x, slope) => where(less(0, x!), g, mul(g, slope!)), null],
  flat: [0],
  result: "integer",
};

/** What 1 + u is above 1 at least, in float32 and float64. */
const LEAST_ROUNDED = 2 ** -52;

/** log(1 + u) for u >= 0, with all digits of a small u: the rounding of 1 + u is divided out (Kahan). */
export function logOfMore(u: E): E {
  const rounded = sub(add(1, u), 1);
  // Where it is 0, nothing is taken of the quotient, but a gradient of its gradient would be NaN.
  return where(less(0, rounded), mul(log(add(1, u)), div(u, maximum(rounded, LEAST_ROUNDED))), u);
}

const softplusSlope = (curve: (x: E) => E) => (g: E, _y: E, x: E, beta: E, threshold: E) =>
  where(less(threshold, mul(x, beta)), g, mul(g, curve(mul(x, beta))));

const SOFTPLUS: ElementwiseDefinition = {
  forward(x, beta, threshold) {
    const z = mul(x!, beta!);
    const soft = div(add(maximum(z, 0), logOfMore(exp(neg(abs(z))))), beta!);
    return where(less(threshold!, z), x!, soft);
  },
  autocast: "f32",
  gradients: [softplusSlope(logistic), null, null],
  recorded: [softplusSlope(steadyLogistic), null, null],
};

/** 1 / (1 + exp(-x)) */
export const sigmoid = /* @__PURE__ */ defineOp({
  name: "sigmoid",
  torch: "a.sigmoid()",
  inputs: 1,
  forward: (x) => logistic(x!),
  gradients: [(g, y) => mul(g, mul(y, sub(1, y)))],
});

/** max(x, 0) */
export const relu = /* @__PURE__ */ defineOp({
  name: "relu",
  torch: "a.relu()",
  inputs: 1,
  forward: (x) => maximum(x!, 0),
  gradients: [(g, y) => where(less(0, y), g, where(less(y, 1), 0, g))],
  flat: [0],
  result: "integer",
});

/** The standard normal distribution function. */
const normalCdf = (x: E) => mul(0.5, add(1, erf(mul(x, Math.SQRT1_2))));

/** x times the standard normal density. */
const timesNormalDensity = (x: E) => mul(x, mul(1 / Math.sqrt(2 * Math.PI), exp(mul(-0.5, mul(x, x)))));
/** Where x is smaller, x * normalCdf(x) may have lost digits. */
const LEAST_FOR_QUOTIENT = 1e-30;

/** Without the other way to compute it. */
export const exactGelu = /* @__PURE__ */ defineOp({
  name: "gelu",
  torch: "F.gelu(a)",
  inputs: 1,
  forward: (x) => mul(x!, normalCdf(x!)),
  // y / x is normalCdf(x), in a third of erf's time.
  gradients: [
    (g, y, x) => {
      const cdf = where(less(abs(x!), LEAST_FOR_QUOTIENT), 0.5, div(y, x!));
      return mul(g, add(cdf, timesNormalDensity(x!)));
    },
  ],
  recorded: [(g, _y, x) => mul(g, add(normalCdf(x!), timesNormalDensity(x!)))],
});

const SQRT_TWO_OVER_PI = Math.sqrt(2 / Math.PI);
const CUBIC = 0.044715;

/** The curve by which tanh approximates erf, and its slope. */
const bent = (x: E) => mul(SQRT_TWO_OVER_PI, add(x, mul(CUBIC, mul(x, mul(x, x)))));
const bend = (x: E) => mul(SQRT_TWO_OVER_PI, add(1, mul(3 * CUBIC, mul(x, x))));

const TANH_GELU: ElementwiseDefinition = {
  forward: (x) => mul(mul(0.5, x!), add(1, tanh(bent(x!)))),
  gradients: [
    (g, _y, x) => {
      const t = tanh(bent(x!));
      return mul(g, mul(0.5, add(add(1, t), mul(x!, mul(sub(1, mul(t, t)), bend(x!))))));
    },
  ],
};

/** How `gelu` computes the normal distribution: exactly, or by tanh, as GPT-2 does. */
export interface GeluOptions {
  readonly approximate?: "none" | "tanh";
}

/**
 * x * (1 + erf(x / sqrt(2))) / 2, or with `approximate: "tanh"` x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
 * (Hendrycks & Gimpel 2016).
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * gelu(tensor([0, 1])); // [0, 0.8413]
 * gelu(tensor([0, 1]), { approximate: "tanh" }); // [0, 0.8412]
 */
export const gelu = /* @__PURE__ */ definePrimitive(
  { torch: "F.gelu(a)" },
  (x: Tensor, options: GeluOptions = {}): Tensor => {
    checkTensor("gelu", x);
    checkOptions("gelu", options, { approximate: "string" });
    const { approximate = "none" } = options;
    const isKnown = approximate === "none" || approximate === "tanh";
    checkValue(isKnown, "gelu", "approximate", '"none" or "tanh"', approximate);
    return approximate === "tanh" ? elementwise(extended("geluTanh", TANH_GELU), [x]) : exactGelu(x);
  },
);

/**
 * x / (1 + exp(-x)), also called swish (Hendrycks & Gimpel 2016).
 *
 * @example
 * silu(tensor([0, 1])); // [0, 0.7311]
 */
export const silu = /* @__PURE__ */ defineOp({
  name: "silu",
  torch: "F.silu(a)",
  inputs: 1,
  forward: (x) => div(x!, add(1, exp(neg(x!)))),
  gradients: [siluSlope(logistic)],
  recorded: [siluSlope(steadyLogistic)],
});

/**
 * x where it is positive, elsewhere x * slope.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * leakyRelu(tensor([-2, 3])); // [-0.02, 3]
 */
export const leakyRelu = /* @__PURE__ */ definePrimitive(
  { torch: "F.leaky_relu(a, $0)", arguments: [0.2] },
  (x: Tensor, slope = 0.01): Tensor => {
    checkTensor("leakyRelu", x);
    checkNumber("leakyRelu", "slope", slope);
    return elementwise(extended("leakyRelu", LEAKY_RELU), [x, slope]);
  },
);

/**
 * log(1 + exp(beta x)) / beta, and x where beta x is above the threshold.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * softplus(tensor([0, 30])); // [0.6931, 30]
 */
export const softplus = /* @__PURE__ */ definePrimitive(
  { torch: "F.softplus(a, $0, $1)", arguments: [2, 1.03] },
  (x: Tensor, beta = 1, threshold = 20): Tensor => {
    checkTensor("softplus", x);
    checkNumber("softplus", "beta", beta);
    checkNumber("softplus", "threshold", threshold);
    return elementwise(extended("softplus", SOFTPLUS), [x, beta, threshold]);
  },
);

export function checkNumber(where: string, name: string, value: unknown): void {
  checkValue(typeof value === "number", where, name, "a number", value);
}
