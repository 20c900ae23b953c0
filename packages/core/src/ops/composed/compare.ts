/** Tensors compared, and numbers that are NaN or infinite left out or replaced. */
import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { checkOptions } from "../../errors/options";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { type DType, isFloat } from "../../values/dtype";
import { sameShape } from "../../values/shape";
import { cast } from "../cast";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { defineFunction } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { eq, le, ne } from "../elementwise/logic";
import { type Axes, sum } from "../reduce/reduce";
import { allTrue } from "../reduce/truth";
import { reshape } from "../shape/shape";

export interface IscloseOptions {
  /** Default 1e-5. */
  readonly rtol?: number;
  /** Default 1e-8. */
  readonly atol?: number;
  /** Whether two NaN are close. Default false. */
  readonly equalNan?: boolean;
}

/**
 * Where |a - b| <= atol + rtol |b|, or both are the same infinity, as bool.
 *
 * @throws OptError BAD_SHAPE, DEVICE_MISMATCH; BAD_ARGUMENT for negative tolerances
 * @example
 * isclose(tensor([1, 2]), tensor([1.000001, 2.1])); // [true, false]
 */
export const isclose = /* @__PURE__ */ defineFunction(
  {
    name: "isclose",
    torch: "torch.isclose(a, b, rtol=0.1, atol=0.25)",
    tensors: ["nm", "m"],
    arguments: [{ rtol: 0.1, atol: 0.25 }],
    isFlat: true,
  },
  (a: Tensor, b: Tensor, options: IscloseOptions = {}): Tensor => {
    checkOptions("isclose", options, { rtol: "number", atol: "number", equalNan: "boolean" });
    const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options;
    checkValue(rtol >= 0, "isclose", "rtol", "0 or more", rtol);
    checkValue(atol >= 0, "isclose", "atol", "0 or more", atol);
    return noGrad(() => {
      const allowed = elementwise("add", [elementwise("mul", [elementwise("abs", [b]), rtol]), atol]);
      const distance = elementwise("abs", [elementwise("sub", [a, b])]);
      const isLimited = elementwise("less", [distance, Number.POSITIVE_INFINITY]);
      const isNear = elementwise("mul", [isLimited, le(distance, allowed)]);
      const isEqual = elementwise("max", [isNear, eq(a, b)]);
      if (!equalNan) return isEqual;
      const areNan = elementwise("mul", [ne(a, a), ne(b, b)]);
      return elementwise("max", [isEqual, areNan]);
    });
  },
);

/**
 * Whether all elements are close, as `isclose` says.
 *
 * @throws OptError BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT; UNSUPPORTED in a compiled function
 * @example
 * await allclose(tensor([1, 2]), tensor([1.000001, 2])); // true
 */
export function allclose(a: Tensor, b: Tensor, options: IscloseOptions = {}): Promise<boolean> {
  return answer(tidy(() => allTrue(isclose(a, b, options))));
}

/**
 * Whether both have one shape and equal elements. NaN equals nothing.
 *
 * @throws OptError BAD_ARGUMENT, DEVICE_MISMATCH; UNSUPPORTED in a compiled function
 * @example
 * await equal(tensor([1, 2]), tensor([1, 2])); // true
 */
export function equal(a: Tensor, b: Tensor): Promise<boolean> {
  checkTensor("equal", a, "a");
  checkTensor("equal", b, "b");
  checkDevice("equal", [a, b]);
  a.device.checkReadable();
  return sameShape(a.shape, b.shape) ? answer(tidy(() => allTrue(eq(a, b)))) : Promise.resolve(false);
}

async function answer(isTrue: Tensor): Promise<boolean> {
  const [value] = await isTrue.data();
  isTrue.dispose();
  return value === 1;
}

/**
 * Where x is infinite, as bool.
 *
 * @example
 * isinf(tensor([1, -Infinity, NaN])); // [false, true, false]
 */
export const isinf = /* @__PURE__ */ defineFunction(
  { name: "isinf", torch: "torch.isinf(a)", tensors: ["nm"], isFlat: true },
  (x: Tensor): Tensor => noGrad(() => eq(elementwise("abs", [x]), Number.POSITIVE_INFINITY)),
);

/**
 * How many elements are not 0, along axes or of all: i32.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * countNonzero(tensor([0, 2, 3])); // 2
 */
export const countNonzero = /* @__PURE__ */ defineFunction(
  { name: "countNonzero", torch: "torch.count_nonzero(a, 1)", tensors: ["nm"], arguments: [1], isFlat: true },
  (x: Tensor, axis?: Axes): Tensor => noGrad(() => sum(cast(ne(x, 0), "i32"), axis)),
);

/** Zeros where x is NaN. */
const numbersOf = (x: Tensor) => (isFloat(x.dtype) ? cast(elementwise("select", [ne(x, x), 0, x]), x.dtype) : x);

/**
 * The sum of what is not NaN, along axes or of all.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * nansum(tensor([1, NaN, 2])); // 3
 */
export const nansum = /* @__PURE__ */ defineFunction(
  { name: "nansum", torch: "torch.nansum(a, 1)", tensors: ["nm"], arguments: [1] },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => sum(numbersOf(x), axis, keepDim),
);

/**
 * The mean of what is not NaN, along axes or of all. NaN where nothing else is.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * nanmean(tensor([1, NaN, 2])); // 1.5
 */
export const nanmean = /* @__PURE__ */ defineFunction(
  { name: "nanmean", torch: "torch.nanmean(a, 1)", tensors: ["nm"], arguments: [1] },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => {
    const count = noGrad(() => sum(cast(eq(x, x), "i32"), axis, keepDim));
    return elementwise("div", [sum(numbersOf(x), axis, keepDim), count]);
  },
);

const LARGEST: Readonly<Partial<Record<DType, number>>> = {
  f64: Number.MAX_VALUE,
  f32: 2 ** 128 - 2 ** 104,
  f16: 65504,
  bf16: 2 ** 128 - 2 ** 120,
};

export interface NanToNumOptions {
  /** Default 0. */
  readonly nan?: number;
  /** Default: the largest number of the dtype. */
  readonly posinf?: number;
  /** Default: the smallest number of the dtype. */
  readonly neginf?: number;
}

/**
 * x with numbers where it is NaN or infinite, through which no gradient flows.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * nanToNum(tensor([1, NaN, Infinity]), { posinf: 9 }); // [1, 0, 9]
 */
export const nanToNum = /* @__PURE__ */ defineFunction(
  { name: "nanToNum", torch: "torch.nan_to_num(a)", tensors: ["nm"] },
  (x: Tensor, options: NanToNumOptions = {}): Tensor => {
    checkOptions("nanToNum", options, { nan: "number", posinf: "number", neginf: "number" });
    const largest = LARGEST[x.dtype];
    if (largest === undefined) return reshape(x, x.shape);
    const { nan = 0, posinf = largest, neginf = -largest } = options;
    const isBeyond = elementwise("less", [largest, x]);
    const above = elementwise("select", [isBeyond, posinf, x]);
    const within = elementwise("select", [elementwise("less", [x, -largest]), neginf, above]);
    return elementwise("select", [ne(x, x), nan, within]);
  },
);
