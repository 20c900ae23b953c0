/** The moves of bits that functions are made of, as functions of JavaScript. */
const double = new Float64Array(1);
/** Its words, low one first: every platform of JavaScript is little-endian. */
const words = new Int32Array(double.buffer);
/** The upper word of sqrt(1/2). */
const SQRT_HALF = 0x3fe6a09e;

/** 2^(i - 1023) at i: putting a number together from words would wait for them to be stored. */
const POWERS = /* @__PURE__ */ Float64Array.from({ length: 2048 }, (_, i) => 2 ** (i - 1023));

export function flipsign(a: number, b: number): number {
  return b < 0 || (b === 0 && 1 / b < 0) ? -a : a;
}

export function power2(n: number): number {
  return POWERS[(n + 1023) & 2047]!;
}

export function exponent(x: number): number {
  double[0] = x;
  return (words[1]! - SQRT_HALF) >> 20;
}

export function significand(x: number): number {
  return x * power2(-exponent(x));
}
