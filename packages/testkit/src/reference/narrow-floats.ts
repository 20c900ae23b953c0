/** float16 and bfloat16 as 16-bit patterns, by the arithmetic of their definition. */

export type NarrowFloat = "f16" | "bf16";

const FORMATS = {
  f16: { fractionBits: 10, minExponent: -14, maxExponent: 15 },
  bf16: { fractionBits: 7, minExponent: -126, maxExponent: 127 },
} as const;

/** The pattern of `x` rounded once to nearest, ties to even. */
export function narrowFloatBits(x: number, format: NarrowFloat): number {
  const { fractionBits, minExponent, maxExponent } = FORMATS[format];
  const sign = Object.is(x, -0) || x < 0 ? 0x8000 : 0;
  const infinity = (2 * maxExponent + 1) * 2 ** fractionBits;
  if (Number.isNaN(x)) return infinity + 2 ** (fractionBits - 1);
  const magnitude = Math.abs(x);
  if (magnitude === Number.POSITIVE_INFINITY) return sign + infinity;
  const exponent = Math.max(exponentOf(magnitude), minExponent);
  // Scaling by powers of two is exact in float64 but where x is far below the smallest value, which rounds to 0 all the same.
  const steps = roundTiesToEven(magnitude / 2 ** (exponent - fractionBits));
  // A carry out of the fraction moves the exponent up by itself; subnormals have no hidden bit and start at 0.
  const bits = (exponent - minExponent) * 2 ** fractionBits + steps;
  return sign + Math.min(bits, infinity);
}

/** The value of a pattern. */
export function narrowFloatValue(bits: number, format: NarrowFloat): number {
  const { fractionBits, minExponent, maxExponent } = FORMATS[format];
  const sign = (bits & 0x8000) === 0 ? 1 : -1;
  const biased = Math.floor((bits & 0x7fff) / 2 ** fractionBits);
  const fraction = (bits & 0x7fff) % 2 ** fractionBits;
  if (biased === 2 * maxExponent + 1) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  const significand = biased === 0 ? fraction : fraction + 2 ** fractionBits;
  return sign * significand * 2 ** (Math.max(biased, 1) - 1 + minExponent - fractionBits);
}

/** floor(log2 x) for positive x. */
function exponentOf(x: number): number {
  const estimate = Math.max(Math.floor(Math.log2(x)), -1074);
  if (2 ** estimate > x) return estimate - 1;
  return 2 ** (estimate + 1) <= x ? estimate + 1 : estimate;
}

function roundTiesToEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
