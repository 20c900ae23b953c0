/** Random integers, orders, coins and categories: drawn from a generator on the host, alike on every device. */

import { CREATE_OPTIONS, drawing, marked, type RandomOptions, room, upload } from "./create";
import { deviceOf } from "./device/registry";
import { tidy } from "./device/scope";
import { checkValue } from "./errors/check-value";
import { check } from "./errors/errors";
import { checkOptions } from "./errors/options";
import { show } from "./errors/show";
import { cast, checkTensor, cumsum, elementwise, gatherAlong, slice, topk } from "./ops";
import { le } from "./ops/elementwise/logic";
import { lookAtInput } from "./ops/look-at";
import { checkGenerator, defaultGenerator, type Generator } from "./random/generator";
import { noGrad } from "./tensor/tape";
import type { Tensor } from "./tensor/tensor";
import { checkDType, type DType, isFloat, significantBits } from "./values/dtype";
import { narrow } from "./values/half";
import { checkRange } from "./values/literal";
import { checkShape, type Shape, showShape, sizeOf } from "./values/shape";

const RANDOM = { ...CREATE_OPTIONS, generator: "object" } as const;

/** Numbers that `draw` gives one by one, drawn again in each run of a compiled function. */
function drawn(
  where: string,
  shape: Shape,
  dtype: DType,
  options: RandomOptions,
  draw: (generator: Generator, values: Float64Array) => void,
): Tensor {
  const { device, requiresGrad, generator = defaultGenerator } = options;
  checkGenerator(where, generator);
  checkShape(where, shape);
  const make = drawing(generator, () => {
    const values = room(where, sizeOf(shape), Float64Array);
    draw(generator, values);
    return narrow(values, dtype);
  });
  return marked(upload(make(), [...shape], dtype, deviceOf(where, device), make), requiresGrad);
}

/** `next()` of each element. */
const each = (next: (generator: Generator) => number) => (generator: Generator, values: Float64Array) => {
  for (let i = 0; i < values.length; i++) values[i] = next(generator);
};

/**
 * Uniform integers from `low` (0 by default) to below `high`; i32 by default.
 *
 * @throws OptError BAD_ARGUMENT unless low < high, and the dtype holds all integers between; BAD_SHAPE, BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * randint(6, [2, 3]); // dice from 0 to 5
 * randint(1, 7, [2, 3]); // dice from 1 to 6
 */
export function randint(high: number, shape: Shape, options?: RandomOptions): Tensor;
export function randint(low: number, high: number, shape: Shape, options?: RandomOptions): Tensor;
export function randint(...given: (number | Shape | RandomOptions | undefined)[]): Tensor {
  const [low, high, shape, options = {}] = (typeof given[1] === "number" ? given : [0, ...given]) as [
    number,
    number,
    Shape,
    RandomOptions?,
  ];
  checkOptions("randint", options, RANDOM);
  const { dtype = "i32" } = options;
  checkDType("randint", dtype);
  const isRange = Number.isSafeInteger(low) && Number.isSafeInteger(high) && low < high && high - low <= 2 ** 32;
  check(
    isRange,
    "BAD_ARGUMENT",
    "randint",
    () => `needs integers low < high, at most 2^32 apart, got ${show(low)} and ${show(high)}.`,
    "For example randint(10, [3]).",
  );
  checkIntegers("randint", [low, high - 1], dtype);
  const span = high - low;
  const next = (generator: Generator) => low + Math.floor((generator.nextUint32() / 2 ** 32) * span);
  return drawn("randint", shape, dtype, options, each(next));
}

/** Checks that a dtype holds all integers between two. @throws OptError BAD_ARGUMENT */
function checkIntegers(where: string, ends: readonly number[], dtype: DType): void {
  checkRange(where, ends, dtype);
  const bits = significantBits(dtype);
  if (bits === undefined) return;
  const isExact = ends.every((end) => Math.abs(end) <= 2 ** bits);
  check(
    isExact,
    "BAD_ARGUMENT",
    where,
    () => `${dtype} holds all integers up to ${2 ** bits}, got ${ends.join(" and ")}.`,
    "Draw i32, and cast with to().",
  );
}

/**
 * A random order of 0 ... n - 1; i32 by default.
 *
 * @throws OptError BAD_ARGUMENT unless n is a count up to which the dtype holds all integers; BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * const order = randperm(10, { generator: new Generator(1) });
 */
export function randperm(n: number, options: RandomOptions = {}): Tensor {
  checkOptions("randperm", options, RANDOM);
  const { dtype = "i32" } = options;
  checkDType("randperm", dtype);
  const isCount = Number.isInteger(n) && n >= 0;
  checkValue(isCount, "randperm", "n", "an integer >= 0", n, "For example 10.");
  checkIntegers("randperm", [Math.max(n - 1, 0)], dtype);
  return drawn("randperm", [n], dtype, options, (generator, values) => values.set(generator.permutation(n)));
}

/** Where numbers are drawn from. */
export interface DrawOptions {
  readonly generator?: Generator;
}

/**
 * 1 with the probability that each element says, else 0, in its dtype. Without a gradient. A probability outside of 0 to 1 throws where
 * the device shares the host's memory; elsewhere it counts as the nearer of the two.
 *
 * @throws OptError BAD_DTYPE for integers; BAD_ARGUMENT
 * @example
 * bernoulli(tensor([0, 0.5, 1])); // [0, 0 or 1, 1]
 */
export function bernoulli(probabilities: Tensor, options: DrawOptions = {}): Tensor {
  const where = "bernoulli";
  checkWeights(where, probabilities, options, { generator: "object" });
  lookAtInput(probabilities, (values) => {
    for (let i = 0; i < values.length; i++) {
      check(
        values[i]! >= 0 && values[i]! <= 1,
        "BAD_ARGUMENT",
        where,
        () => `probabilities must be from 0 to 1, got ${values[i]} at ${i}.`,
        "Apply sigmoid to logits.",
      );
    }
  });
  const { shape, device, dtype } = probabilities;
  return noGrad(() =>
    tidy(() => {
      const level = drawn(
        where,
        shape,
        "f32",
        { device, ...options },
        each((generator) => generator.nextFloat()),
      );
      const most = dtype === "f64" ? probabilities : cast(probabilities, "f32");
      return cast(elementwise("less", [level, most]), dtype);
    }),
  );
}

/** How categories are drawn. */
export interface MultinomialOptions extends DrawOptions {
  /** Whether a category may come more than once. Default false. */
  readonly replacement?: boolean;
}

/**
 * Indices (i32) of `count` categories of each row, drawn with probabilities proportional to the weights [categories] or [rows, categories].
 * Without replacement those drawn earlier come first. Without a gradient. Weights that are negative, not finite or all 0 throw where
 * the device shares the host's memory.
 *
 * @throws OptError BAD_ARGUMENT for more categories than there are, without replacement; BAD_SHAPE, BAD_DTYPE
 * @example
 * multinomial(tensor([0, 10, 3, 0]), 2); // [1, 2] or [2, 1]
 * multinomial(tensor([0, 1]), 3, { replacement: true }); // [1, 1, 1]
 */
export function multinomial(weights: Tensor, count: number, options: MultinomialOptions = {}): Tensor {
  const where = "multinomial";
  checkWeights(where, weights, options, { generator: "object", replacement: "boolean" });
  const { replacement = false, generator = defaultGenerator } = options;
  const { shape, device } = weights;
  const categories = shape.at(-1) ?? 0;
  const isRows = (shape.length === 1 || shape.length === 2) && categories > 0;
  check(
    isRows,
    "BAD_SHAPE",
    where,
    () => `weights must be [categories] or [rows, categories], got ${showShape(shape)}.`,
  );
  const most = replacement ? Number.POSITIVE_INFINITY : categories;
  const isCount = Number.isInteger(count) && count > 0 && count <= most;
  const wanted = replacement ? "an integer > 0" : `an integer from 1 to ${most}`;
  checkValue(isCount, where, "the count", wanted, count, "More are drawn with { replacement: true }.");
  lookAtInput(weights, (values) => checkRows(where, values, categories));
  const dtype = device.backend.dtypes.includes("f64") ? "f64" : "f32";
  return noGrad(() =>
    tidy(() => {
      const wide = cast(weights, dtype);
      const numbers = (extent: number, next: (generator: Generator) => number) =>
        drawn(where, [...shape.slice(0, -1), extent], dtype, { device, generator }, each(next));
      if (replacement) return searched(wide, numbers(count, uniform));
      // The first to arrive, where waiting times are exponential and the weights their rates.
      return topk(elementwise("div", [wide, numbers(categories, exponential)]), count).indices;
    }),
  );
}

/** In [0, 1), a multiple of 2^-48. */
const uniform = (generator: Generator) => generator.nextFloat() + generator.nextFloat() * 2 ** -24;
/** Never 0, and never infinite. */
const exponential = (generator: Generator) => -Math.log((generator.nextUint32() + 0.5) * 2 ** -32);

/** The first category whose running sum is above a share of the total: by bisection, as many rounds as the count has bits. */
function searched(weights: Tensor, shares: Tensor): Tensor {
  const last = weights.shape.at(-1)! - 1;
  const sums = cumsum(weights, -1);
  const level = elementwise("mul", [shares, slice(sums, last, last + 1, -1)]);
  let found = cast(elementwise("mul", [shares, 0]), "i32");
  for (let bit = 2 ** Math.floor(Math.log2(Math.max(last, 1))); bit >= 1 && last > 0; bit /= 2) {
    const next = elementwise("add", [found, bit]);
    const before = elementwise("sub", [elementwise("minimum", [next, last]), 1]);
    const isBelow = le(gatherAlong(sums, before, -1), level);
    const isThere = elementwise("mul", [le(next, last), isBelow]);
    found = elementwise("select", [isThere, next, found]);
  }
  return found;
}

function checkWeights(where: string, weights: unknown, options: object, known: Parameters<typeof checkOptions>[2]) {
  checkTensor(where, weights, "the first argument");
  checkOptions(where, options, known);
  const { dtype } = weights;
  check(isFloat(dtype), "BAD_DTYPE", where, () => `needs floats, got ${dtype}.`, 'Cast with to("f32").');
  const { generator } = options as DrawOptions;
  if (generator !== undefined) checkGenerator(where, generator);
}

function checkRows(where: string, values: ArrayLike<number>, extent: number): void {
  for (let begin = 0; begin < values.length; begin += extent) {
    let total = 0;
    for (let i = begin; i < begin + extent; i++) {
      check(
        values[i]! >= 0 && values[i]! < Number.POSITIVE_INFINITY,
        "BAD_ARGUMENT",
        where,
        () => `weights must be finite and >= 0, got ${values[i]} at ${i}.`,
        "Apply exp to logits.",
      );
      total += values[i]!;
    }
    const got = () => `a row of weights must have one above 0, got none in row ${begin / extent}.`;
    check(total > 0, "BAD_ARGUMENT", where, got, "Check for underflow.");
  }
}
