/** Bits of integers, by sums and comparisons that are exact in float64 and in i32: so on every device. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import type { Expression } from "../../rule/expression";
import { add, less, mul, sub, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { checkTensor } from "../check-tensor";
import { defineFunction } from "../define-function";
import type { ElementwiseDefinition } from "../definition";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";
import { eq, ne } from "./logic";

type E = Expression;

const HALF = 2 ** 30;
const BITS = Array.from({ length: 31 }, (_, i) => 2 ** (30 - i));

/** Without the highest bit. */
const withoutSign = (x: E) => where(less(x, 0), add(add(x, HALF), HALF), x);

/** The bits that both have, from the highest on. */
function common(a: E, b: E): E {
  let [left, right]: [E, E] = [withoutSign(a), withoutSign(b)];
  let bits = mul(a, 0);
  for (const bit of BITS) {
    const [hasLeft, hasRight] = [less(bit - 1, left), less(bit - 1, right)];
    bits = where(hasLeft, where(hasRight, add(bits, bit), bits), bits);
    left = where(hasLeft, sub(left, bit), left);
    right = where(hasRight, sub(right, bit), right);
  }
  const negative = sub(sub(bits, HALF), HALF);
  return where(less(a, 0), where(less(b, 0), negative, bits), bits);
}

/** 2^n for n from 0 to 31, in the integers' arithmetic. */
function power(n: E): E {
  let [factor, left]: [E, E] = [add(mul(n, 0), 1), n];
  for (const bit of [16, 8, 4, 2, 1]) {
    const isSet = less(bit - 1, left);
    factor = where(isSet, mul(factor, 2 ** bit), factor);
    left = where(isSet, sub(left, bit), left);
  }
  return factor;
}

const isPlace = (n: E, yes: E, no: E | number) => where(less(n, 0), no, where(less(n, 32), yes, no));

/** x / 2^n, cut, for x >= 0: long division. */
function quotient(x: E, n: E): E {
  let [bits, left]: [E, E] = [mul(x, 0), x];
  const divisor = power(n);
  for (const [i, bit] of BITS.entries()) {
    const step = mul(divisor, bit);
    const fits = (yes: E, no: E) => where(less(n, i + 1), where(less(left, step), no, yes), no);
    [bits, left] = [fits(add(bits, bit), bits), fits(sub(left, step), left)];
  }
  return bits;
}

const shiftedLeft = (a: E, n: E) => isPlace(n, mul(a, power(n)), 0);

/** Towards -Infinity, as -1 - (-1 - x) / 2^n does of negative x. */
function shiftedRight(x: E, n: E): E {
  const isNegative = less(x, 0);
  const size = quotient(where(isNegative, sub(-1, x), x), n);
  const shifted = isPlace(n, size, 0);
  return where(isNegative, sub(-1, shifted), shifted);
}

const either = (a: E, b: E) => add(a, sub(b, common(a, b)));

function oneOfTwo(a: E, b: E): E {
  const both = common(a, b);
  return add(sub(a, both), sub(b, both));
}

function checkIntegers(where: string, { dtype }: Tensor): void {
  check(!isFloat(dtype), "BAD_DTYPE", where, () => `needs integers, got ${dtype}.`, 'Use x.to("i32").');
}

/** @param ofBooleans the op that does the same of them, if one does */
function bitOp(
  name: string,
  torch: string,
  tried: number,
  forward: (a: E, b: E) => E,
  ofBooleans?: (a: Tensor, b: Tensor) => Tensor,
) {
  const definition = { forward, gradients: [null, null], result: "integer" } as unknown as ElementwiseDefinition;
  return defineFunction(
    { name, torch: `torch.${torch}(a, ${tried})`, tensors: ["i32 nm"], arguments: [tried], isFlat: true },
    (a: Tensor, b: Tensor | number): Tensor => {
      checkIntegers(name, a);
      if (typeof b === "number") checkValue(Number.isInteger(b), name, "b", "an integer or a tensor", b);
      else {
        checkTensor(name, b, "b");
        checkIntegers(name, b);
        const areBooleans = a.dtype === "bool" && b.dtype === "bool";
        if (areBooleans && ofBooleans !== undefined) return ofBooleans(a, b);
        check(!areBooleans, "BAD_DTYPE", name, () => "needs integers, got bool.", 'Use x.to("i32").');
      }
      return elementwise(extended(name, definition), [a, b]);
    },
  );
}

/**
 * The bits that both integers have; of booleans whether both are true.
 *
 * @throws OptError BAD_DTYPE for floats; BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT
 * @example
 * bitwiseAnd(tensor([6, -1], { dtype: "i32" }), 3); // [2, 3]
 */
export const bitwiseAnd = /* @__PURE__ */ bitOp("bitwiseAnd", "bitwise_and", 6, common, (a, b) =>
  elementwise("mul", [a, b]),
);

/**
 * The bits that one of two integers has; of booleans whether one is true.
 *
 * @throws OptError BAD_DTYPE for floats; BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT
 * @example
 * bitwiseOr(tensor([6, 8], { dtype: "i32" }), 3); // [7, 11]
 */
export const bitwiseOr = /* @__PURE__ */ bitOp("bitwiseOr", "bitwise_or", 5, either, (a, b) =>
  elementwise("max", [a, b]),
);

/**
 * The bits that just one of two integers has; of booleans whether they differ.
 *
 * @throws OptError BAD_DTYPE for floats; BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT
 * @example
 * bitwiseXor(tensor([6, -1], { dtype: "i32" }), 3); // [5, -4]
 */
export const bitwiseXor = /* @__PURE__ */ bitOp("bitwiseXor", "bitwise_xor", 3, oneOfTwo, ne);

/**
 * a 2^n modulo 2^32, or 2^8 for u8; 0 for an n that is no place of a bit.
 *
 * @throws OptError BAD_DTYPE for floats and booleans; BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT
 * @example
 * bitwiseLeftShift(tensor([3, -1], { dtype: "i32" }), 2); // [12, -4]
 */
export const bitwiseLeftShift = /* @__PURE__ */ bitOp("bitwiseLeftShift", "bitwise_left_shift", 30, shiftedLeft);

/**
 * The largest integer that is not above a / 2^n; 0 or -1, by the sign, for an n that is no place of a bit.
 *
 * @throws OptError BAD_DTYPE for floats and booleans; BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT
 * @example
 * bitwiseRightShift(tensor([12, -1], { dtype: "i32" }), 2); // [3, -1]
 */
export const bitwiseRightShift = /* @__PURE__ */ bitOp("bitwiseRightShift", "bitwise_right_shift", 1, shiftedRight);

/**
 * The other bits: -1 - x; of booleans the other one.
 *
 * @throws OptError BAD_DTYPE for floats
 * @example
 * bitwiseNot(tensor([6, -1], { dtype: "i32" })); // [-7, 0]
 */
export const bitwiseNot = /* @__PURE__ */ defineFunction(
  { name: "bitwiseNot", torch: "torch.bitwise_not(a)", tensors: ["i32 nm"], isFlat: true },
  (x: Tensor): Tensor => {
    checkIntegers("bitwiseNot", x);
    return x.dtype === "bool" ? eq(x, 0) : elementwise("sub", [-1, x]);
  },
);
