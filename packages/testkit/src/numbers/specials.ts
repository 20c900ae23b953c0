/** The values that break kernels: the edges of each dtype, and operands whose sums and products fall midway between two values. */
import type { DType } from "@opt/core/backend";
import { narrowFloatBits } from "../reference/narrow-floats";

const EVERY_FLOAT = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -0, 1, -1, 2, 0.5, -3] as const;

/** Largest, smallest normal and subnormal values, and neighbours of one. (1 + 2^-12)^2 lies midway between two float32 values. */
const F32 = [
  2 ** 128 - 2 ** 104,
  -(2 ** 128 - 2 ** 104),
  2 ** -126,
  2 ** -126 - 2 ** -149,
  -(2 ** -149),
  3 * 2 ** -149,
  1 + 2 ** -12,
  1 + 2 ** -23,
  1 - 2 ** -24,
  2 ** -24,
  -(2 ** -24),
  2 ** 24 - 1,
  2 ** -100,
  2 ** 100,
] as const;

/** (1 + 2^-26)(1 + 2^-27) lies midway between two float64 values. */
const F64 = [
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
  2 ** -1022,
  2 ** -1022 - 2 ** -1074,
  -(2 ** -1074),
  3 * 2 ** -1074,
  1 + 2 ** -26,
  1 + 2 ** -27,
  1 + 2 ** -52,
  1 - 2 ** -53,
  2 ** -53,
  -(2 ** -53),
  1e-200,
  1e200,
] as const;

const F16 = [65504, -65504, 2 ** -14, 2 ** -24, -(2 ** -24), 2 ** -14 - 2 ** -24, 1 + 2 ** -10] as const;
const BF16 = [2 ** 128 - 2 ** 120, 2 ** -126, 2 ** -133, -(2 ** -133), 1 + 2 ** -7] as const;

/** Special values as stored elements: f16 and bf16 as their 16-bit patterns. */
export const SPECIALS: Readonly<Record<DType, readonly number[]>> = {
  f32: [...EVERY_FLOAT, ...F32],
  f64: [...EVERY_FLOAT, ...F64],
  f16: [...EVERY_FLOAT, ...F16].map((x) => narrowFloatBits(x, "f16")),
  bf16: [...EVERY_FLOAT, ...BF16].map((x) => narrowFloatBits(x, "bf16")),
  i32: [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), 2 ** 24 + 1, 255, 256],
  u8: [0, 1, 127, 128, 255],
  bool: [0, 1],
};
