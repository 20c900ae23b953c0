/** Which bin numbers are in, and how many are in each. */
import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { overSamples } from "../../tensor/batching";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { showShape } from "../../values/shape";
import { cast } from "../cast";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { defineFunction } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { eq, le } from "../elementwise/logic";
import { floor } from "../elementwise/round";
import { gatherAlong } from "../indices/gather-along";
import { floats, places } from "../indices/positions";
import { summed } from "../indices/scatter";
import { fill } from "../map";
import { maxOver, minOver } from "../reduce/largest";
import { reshape } from "../shape/shape";

export interface SearchsortedOptions {
  /** Behind elements that are equal, instead of before them. Default false. */
  readonly right?: boolean;
}

/** Binary search: in each round the place moves by a power of two, if what is before it there belongs before the value. */
function found(sorted: Tensor, values: Tensor, { right = false }: SearchsortedOptions): Tensor {
  const extent = sorted.shape.at(-1)!;
  return noGrad(() => {
    let place = fill(values.shape, 0, "i32", values.device);
    if (extent === 0 || values.size === 0) return place;
    for (let step = 2 ** Math.floor(Math.log2(extent)); step >= 1; step /= 2) {
      const next = elementwise("add", [place, step]);
      const before = elementwise("minimum", [elementwise("sub", [next, 1]), extent - 1]);
      const there = gatherAlong(sorted, before, -1);
      const isBehind = right ? elementwise("less", [values, there]) : le(values, there);
      const isBeyond = elementwise("less", [extent, next]);
      place = elementwise("select", [elementwise("max", [isBehind, isBeyond]), place, next]);
    }
    return cast(place, "i32");
  });
}

/**
 * The places (i32) where values would keep rows [..., n] sorted: before equal elements, or behind them. The values are [..., m], or of any shape
 * for one row [n].
 *
 * @throws OptError BAD_SHAPE for other rows than there are; BAD_DTYPE unless both have one dtype; DEVICE_MISMATCH
 * @example
 * searchsorted(tensor([1, 3, 5]), tensor([3, 6])); // [1, 3]
 */
export const searchsorted = /* @__PURE__ */ defineFunction(
  {
    name: "searchsorted",
    torch: "torch.searchsorted(a, b)",
    tensors: ["n1", "nm"],
    isFlat: true,
  },
  (sorted: Tensor, values: Tensor, options: SearchsortedOptions = {}): Tensor => {
    const where = "searchsorted";
    checkDevice(where, [sorted, values]);
    checkOptions(where, options, { right: "boolean" });
    const isSame = sorted.dtype === values.dtype;
    check(isSame, "BAD_DTYPE", where, () => `both must have one dtype, got ${sorted.dtype} and ${values.dtype}.`);
    const rows = sorted.shape.slice(0, -1);
    const fits = rows.length === 0 || `${rows}` === `${values.shape.slice(0, -1)}`;
    check(
      sorted.shape.length > 0 && fits && (rows.length === 0 || values.shape.length === sorted.shape.length),
      "BAD_SHAPE",
      where,
      () => `needs rows [..., n] and values [..., m], got ${showShape(sorted.shape)} and ${showShape(values.shape)}.`,
    );
    if (rows.length > 0) return found(sorted, values, options);
    return reshape(found(sorted, reshape(values, [values.size]), options), values.shape);
  },
);

/**
 * The bin (i32) of each element of x: how many of the sorted boundaries [n] are below it, or not above it.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH
 * @example
 * bucketize(tensor([0, 3, 9]), tensor([1, 3, 5])); // [0, 1, 3]
 */
export const bucketize = /* @__PURE__ */ defineFunction(
  { name: "bucketize", torch: "torch.bucketize(a, b)", tensors: ["nm", "1"], isFlat: true },
  (x: Tensor, boundaries: Tensor, options: SearchsortedOptions = {}): Tensor => {
    const isRow = boundaries.shape.length === 1;
    check(isRow, "BAD_SHAPE", "bucketize", () => `boundaries must be a vector, got ${showShape(boundaries.shape)}.`);
    return searchsorted(boundaries, x, options);
  },
);

export interface HistcOptions {
  /** Default 100. */
  readonly bins?: number;
  /** What is below it is in no bin. Default: x's smallest element. */
  readonly min?: number;
  /** What is above it is in no bin. Default: x's largest element. */
  readonly max?: number;
}

/**
 * How many elements are in each of `bins` equal bins from min to max, in x's dtype. The last bin has both ends.
 *
 * @throws OptError BAD_ARGUMENT for a min that is not below max, or no count of bins; BAD_DTYPE for integers; BAD_SHAPE for nothing
 * @example
 * histc(tensor([1, 2, 2, 4]), { bins: 3, min: 1, max: 4 }); // [1, 2, 1]
 */
export const histc = /* @__PURE__ */ defineFunction(
  {
    name: "histc",
    torch: "torch.histc(a.float(), 4, -1, 1).to(a.dtype)",
    tensors: ["nm"],
    arguments: [{ bins: 4, min: -1, max: 1 }],
    isFlat: true,
  },
  (x: Tensor, options: HistcOptions = {}): Tensor => {
    const samples = overSamples(histc, x, options);
    if (samples) return samples;
    checkOptions("histc", options, { bins: "number", min: "number", max: "number" });
    const { bins = 100, min, max } = options;
    checkValue(Number.isInteger(bins) && bins > 0, "histc", "bins", "a positive count", bins, "For example 10.");
    check(isFloat(x.dtype), "BAD_DTYPE", "histc", () => `needs floats, got ${x.dtype}.`, 'Use x.to("f32").');
    const isRange = min === undefined || max === undefined || min < max;
    check(isRange, "BAD_ARGUMENT", "histc", () => `min must be below max, got ${min} and ${max}.`);
    return noGrad(() => {
      const all = cast(reshape(x, [x.size]), x.dtype === "f64" ? "f64" : "f32");
      const [least, most] = [bound(all, min, minOver), bound(all, max, maxOver)];
      const isOne = eq(least, most);
      const [low, high] = [elementwise("sub", [least, isOne]), elementwise("add", [most, isOne])];
      const scaled = elementwise("mul", [elementwise("sub", [all, low]), bins]);
      const bin = floor(elementwise("div", [scaled, elementwise("sub", [high, low])]));
      const isWithin = elementwise("mul", [le(low, all), le(all, high)]);
      const places = elementwise("select", [isWithin, elementwise("minimum", [bin, bins - 1]), -1]);
      return cast(summed(fill([x.size], 1, "f32", x.device), cast(places, "i32"), [bins]), x.dtype);
    });
  },
);

function bound(x: Tensor, given: number | undefined, extreme: (x: Tensor) => Tensor): Tensor {
  return given === undefined ? extreme(x) : fill([], given, x.dtype, x.device);
}

export interface BincountOptions {
  /** What each number counts, in the shape of x. Default: 1. */
  readonly weights?: Tensor;
  /** At least so many counts. Default 0. */
  readonly minLength?: number;
}

/**
 * How often each number from 0 to the largest is in x, a vector of integers: i32, or sums in the dtype of `weights`. How many they are is known
 * only when the device has answered.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, DEVICE_MISMATCH; BAD_ARGUMENT for negative numbers; UNSUPPORTED in a compiled function
 * @example
 * await bincount(tensor([1, 1, 3], { dtype: "i32" })); // [0, 2, 0, 1]
 */
export function bincount(x: Tensor, options: BincountOptions = {}): Promise<Tensor> {
  const where = "bincount";
  checkTensor(where, x);
  check(
    x.dtype === "i32" || x.dtype === "u8",
    "BAD_DTYPE",
    where,
    () => `needs integers, got ${x.dtype}.`,
    'Use x.to("i32").',
  );
  check(x.shape.length === 1, "BAD_SHAPE", where, () => `needs a vector, got ${showShape(x.shape)}.`);
  checkOptions(where, options, { weights: "object", minLength: "number" });
  const { weights, minLength = 0 } = options;
  checkValue(
    Number.isInteger(minLength) && minLength >= 0,
    where,
    "minLength",
    "a count",
    minLength,
    "For example 10.",
  );
  if (weights !== undefined) {
    checkTensor(where, weights, "weights");
    checkDevice(where, [x, weights]);
    const fits = weights.shape.length === 1 && weights.size === x.size;
    check(fits, "BAD_SHAPE", where, () => `weights must be ${showShape(x.shape)}, got ${showShape(weights.shape)}.`);
  }
  x.device.checkReadable();
  return counted(x, weights, minLength);
}

/** By the host, in order: so equal on every device. */
async function counted(x: Tensor, weights: Tensor | undefined, minLength: number): Promise<Tensor> {
  const [numbers, added] = await Promise.all([x.data(), weights?.data()]);
  let length = minLength;
  for (const number of numbers) {
    check(number >= 0, "BAD_ARGUMENT", "bincount", () => `numbers must be 0 or more, got ${number}.`);
    length = Math.max(length, number + 1);
  }
  const sums = new Float64Array(length);
  const { device } = x;
  if (weights === undefined) {
    for (const number of numbers) sums[number]! += 1;
    return places([sums.length], device, (i) => sums[i]!);
  }
  const { dtype } = weights;
  const compute = dtype === "f64" ? "f64" : "f32";
  const round = compute === "f64" ? (sum: number) => sum : Math.fround;
  for (const [i, number] of numbers.entries()) sums[number] = round(sums[number]! + added![i]!);
  return tidy(() =>
    cast(
      floats([sums.length], compute, device, (i) => sums[i]!),
      dtype,
    ),
  );
}
