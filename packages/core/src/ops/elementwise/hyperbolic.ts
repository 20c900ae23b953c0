/** Hyperbolic functions and their inverses. */
import type { Expression } from "../../rule/expression";
import { abs, add, div, exp, expm1, less, log, log1p, minimum, mul, neg, sqrt, sub, where } from "../../rule/symbols";
import { defineOp } from "./define-op";

type E = Expression;

/** Odd functions have the sign of x, also of a zero. */
const signed = (x: E, size: E) => where(less(x, 0), neg(size), where(less(0, x), size, x));

/** exp(x) / 2, where exp(x) alone may be too large. */
function halfExp(x: E): E {
  const root = exp(mul(x, 0.5));
  return mul(mul(0.5, root), root);
}

/** From here on the other part is lost beside exp(x) / 2, in float64 too. */
const LARGE = 20;

const sinhOf = (x: E) => {
  const size = abs(x);
  const less1 = expm1(minimum(size, LARGE)); // of what is not taken, no gradient may be NaN
  const small = mul(0.5, add(less1, div(less1, add(less1, 1))));
  return signed(x, where(less(size, LARGE), small, halfExp(size)));
};
const coshOf = (x: E) => {
  const [size, near] = [abs(x), minimum(abs(x), LARGE)];
  return where(less(size, LARGE), mul(0.5, add(exp(near), exp(neg(near)))), halfExp(size));
};

/**
 * The hyperbolic sine of x.
 *
 * @example
 * sinh(tensor([0, 1])); // [0, 1.1752]
 */
export const sinh = /* @__PURE__ */ defineOp({
  name: "sinh",
  torch: "torch.sinh(a)",
  inputs: 1,
  forward: (x) => sinhOf(x!),
  gradients: [(g, _y, x) => mul(g, coshOf(x!))],
});

/**
 * The hyperbolic cosine of x.
 *
 * @example
 * cosh(tensor([0, 1])); // [1, 1.5431]
 */
export const cosh = /* @__PURE__ */ defineOp({
  name: "cosh",
  torch: "torch.cosh(a)",
  inputs: 1,
  forward: (x) => coshOf(x!),
  gradients: [(g, _y, x) => mul(g, sinhOf(x!))],
});

/** From here on x^2 + 1 is x^2. */
const SQUARE_ALONE = 1e9;

/**
 * The inverse of sinh: log(x + sqrt(x^2 + 1)), with all digits of a small x.
 *
 * @example
 * asinh(tensor([0, 1.1752])); // [0, 1]
 */
export const asinh = /* @__PURE__ */ defineOp({
  name: "asinh",
  torch: "torch.asinh(a)",
  inputs: 1,
  forward: (x) => {
    const size = abs(x!);
    const near = where(less(size, SQUARE_ALONE), size, 1);
    const square = mul(near, near);
    const small = log1p(add(near, div(square, add(1, sqrt(add(square, 1))))));
    return signed(x!, where(less(size, SQUARE_ALONE), small, add(log(size), Math.LN2)));
  },
  gradients: [(g, _y, x) => div(g, sqrt(add(mul(x!, x!), 1)))],
});

/**
 * The inverse of cosh, for x from 1 on; NaN below.
 *
 * @example
 * acosh(tensor([1, 1.5431])); // [0, 1]
 */
export const acosh = /* @__PURE__ */ defineOp({
  name: "acosh",
  torch: "torch.acosh(a)",
  inputs: 1,
  domain: { low: 1.1, high: 4, finite: true },
  forward: (x) => {
    const above = sub(where(less(x!, SQUARE_ALONE), x!, 1), 1);
    // Two roots, of which one is NaN below 1: of the product it would be none.
    const small = log1p(add(above, mul(sqrt(above), sqrt(add(above, 2)))));
    return where(less(x!, SQUARE_ALONE), small, add(log(x!), Math.LN2));
  },
  gradients: [(g, _y, x) => div(g, mul(sqrt(sub(x!, 1)), sqrt(add(x!, 1))))],
});

/**
 * The inverse of tanh: log((1 + x) / (1 - x)) / 2, with all digits of a small x.
 *
 * @example
 * atanh(tensor([0, 0.5])); // [0, 0.5493]
 */
export const atanh = /* @__PURE__ */ defineOp({
  name: "atanh",
  torch: "torch.atanh(a)",
  inputs: 1,
  domain: { low: -0.95, high: 0.95, finite: true },
  forward: (x) => {
    const size = abs(x!);
    return signed(x!, mul(0.5, log1p(div(mul(2, size), sub(1, size)))));
  },
  gradients: [(g, _y, x) => div(g, sub(1, mul(x!, x!)))],
});
