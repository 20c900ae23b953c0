/** The numbers of a fill: the same on every device and, rounded, in every dtype. */
import type { DType } from "@opt/core";
import { Random } from "../numbers/random";
import type { Fill, Shape } from "./program";

export const sizeOf = (shape: Shape): number => shape.reduce((a, b) => a * b, 1);

/** Multiples of 1/16 below 4 in magnitude: six bits, which even bf16 holds. */
const GRID = 16;

/** Not the largest: where sums leave a dtype depends on their order. */
const SPECIAL = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  0,
  -0,
  2 ** -149,
  -(2 ** -140),
  2 ** -24,
];

/** Some come back from beyond float32 in float64, or meet a zero before they get there. */
const EXTREME = [0, 2 ** 100, 2 ** 100, -(2 ** 100), 2 ** -70, 2 ** 80, 2 ** 127, 1, -2];

/** Every run of a program asks for the same ones again. */
const known = new WeakMap<Fill, Float64Array>();

export function numbersOf(fill: Fill, shape: Shape): Float64Array {
  const before = known.get(fill);
  if (before?.length === sizeOf(shape)) return before.slice(); // devices may adopt it
  const random = new Random(fill.seed);
  const draw = {
    grid: () => (random.below(8 * GRID - 1) - (4 * GRID - 1)) / GRID,
    small: () => (random.below(4 * GRID - 1) - (2 * GRID - 1)) / (4 * GRID),
    ties: () => (random.below(5) - 2) / 2,
    special: () => (random.below(3) === 0 ? random.pick(SPECIAL) : (random.below(65) - 32) / 8),
    extreme: () => random.pick(EXTREME),
    labels: () => (fill.seed % 3 === 0 || random.below(2) === 0 ? -100 : random.below(fill.below ?? 6)),
    whole: () => random.below(fill.below ?? 6),
    ones: () => 1,
  }[fill.kind];
  const numbers = new Float64Array(sizeOf(shape));
  for (let i = 0; i < numbers.length; i++) numbers[i] = draw();
  known.set(fill, numbers);
  return numbers.slice();
}

export const isFloat = (dtype: DType): boolean =>
  dtype === "f32" || dtype === "f64" || dtype === "f16" || dtype === "bf16";

/** How far numbers of each dtype are apart at least. */
export const EPSILON: Record<DType, number> = {
  f64: 2 ** -52,
  f32: 2 ** -23,
  f16: 2 ** -10,
  bf16: 2 ** -7,
  i32: 0,
  u8: 0,
  bool: 0,
  c64: 2 ** -23,
};
