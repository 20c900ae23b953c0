/** Rounding to integers, and signs: what has the gradient 0. */

import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import type { Expression } from "../../rule/expression";
import { abs, add, less, neg, sub, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { clone, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import type { ElementwiseDefinition } from "../definition";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

const zeroGradient = (g: Expression) => where(less(g, g), g, 0);

/** Beside `whole`, from which on all numbers are integers, the fraction is rounded off. A zero keeps its sign. */
export function nearest(x: Expression, whole: Expression): Expression {
  const size = sub(add(abs(x), whole), whole);
  const signed = where(less(x, 0), neg(size), where(less(0, x), size, x));
  return where(less(abs(x), whole), signed, x);
}

function below(x: Expression, whole: Expression): Expression {
  const near = nearest(x, whole);
  return where(less(x, near), sub(near, 1), near);
}

const ofWhole = (forward: (x: Expression, whole: Expression) => Expression): ElementwiseDefinition => ({
  forward: (x, whole) => forward(x!, whole!),
  gradients: [zeroGradient, null],
  result: "integer",
});

const ROUND = /* @__PURE__ */ ofWhole(nearest);
const FLOOR = /* @__PURE__ */ ofWhole(below);
/** -floor(-x): -0 above -1. */
const CEIL = /* @__PURE__ */ ofWhole((x, whole) => neg(below(neg(x), whole)));

const SIGN: ElementwiseDefinition = {
  forward: (x) => where(less(x!, 0), -1, where(less(0, x!), 1, 0)),
  gradients: [zeroGradient],
  result: "integer",
};

export interface RoundOptions {
  /** Digits after the point; before it, if negative. Default 0. */
  readonly decimals?: number;
}

/**
 * The nearest integer, and of two as near the even one; with `decimals` round(x 10^decimals) / 10^decimals. The gradient is 0, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT; BAD_DTYPE for booleans, and for integers with decimals
 * @example
 * round(tensor([0.5, 1.5, -2.6])); // [0, 2, -3]
 * round(tensor([1.26]), { decimals: 1 }); // [1.3]
 */
export const rounded = /* @__PURE__ */ definePrimitive(
  { torch: "a.round()" },
  (x: Tensor, options: RoundOptions = {}): Tensor => {
    checkTensor("round", x);
    checkOptions("round", options, { decimals: "number" });
    const { decimals = 0 } = options;
    checkValue(Number.isInteger(decimals), "round", "decimals", "an integer", decimals, "For example { decimals: 1 }.");
    return decimals === 0 ? whole("round", ROUND, x) : toDecimals(x, decimals);
  },
);

/**
 * The largest integer that is not above x. The gradient is 0.
 *
 * @throws OptError BAD_ARGUMENT; BAD_DTYPE for booleans
 * @example
 * floor(tensor([1.5, -1.5])); // [1, -2]
 */
export const floor = /* @__PURE__ */ definePrimitive({ torch: "a.floor()" }, (x: Tensor): Tensor => {
  return whole("floor", FLOOR, x);
});

/**
 * The smallest integer that is not below x. The gradient is 0.
 *
 * @throws OptError BAD_ARGUMENT; BAD_DTYPE for booleans
 * @example
 * ceil(tensor([1.5, -1.5])); // [2, -1]
 */
export const ceil = /* @__PURE__ */ definePrimitive({ torch: "a.ceil()" }, (x: Tensor): Tensor => {
  return whole("ceil", CEIL, x);
});

function whole(name: string, definition: ElementwiseDefinition, x: Tensor): Tensor {
  checkTensor(name, x);
  check(x.dtype !== "bool", "BAD_DTYPE", name, () => "needs a tensor of numbers, got bool.", "Booleans are whole.");
  return isFloat(x.dtype)
    ? elementwise(extended(name, definition), [x, x.dtype === "f64" ? 2 ** 52 : 2 ** 23])
    : clone(x);
}

/**
 * -1, 0 or 1 by the sign of x; 0 where x is NaN, as in PyTorch. The gradient is 0.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * sign(tensor([-2, 0, 3])); // [-1, 0, 1]
 */
export const sign = /* @__PURE__ */ definePrimitive({ torch: "a.sign()" }, (x: Tensor): Tensor => {
  checkTensor("sign", x);
  return x.dtype === "bool" ? clone(x) : elementwise(extended("sign", SIGN), [x]);
});

/** PyTorch multiplies by a power of ten and divides by it, or the other way round. */
function toDecimals(x: Tensor, decimals: number): Tensor {
  check(isFloat(x.dtype), "BAD_DTYPE", "round", () => `decimals need floats, got ${x.dtype}.`, 'Use x.to("f32").');
  const [scale, back] = decimals > 0 ? (["mul", "div"] as const) : (["div", "mul"] as const);
  const power = 10 ** Math.abs(decimals);
  return computeIn(computeDType(x.dtype), [x], x.dtype, (wide) =>
    elementwise(back, [rounded(elementwise(scale, [wide!, power])), power]),
  );
}
