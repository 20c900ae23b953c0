/** The moves of bits that functions are made of, as functions of JavaScript. */
const double = new Float64Array(1);
/** Its words, low one first: every platform of JavaScript is little-endian. */
const words = new Int32Array(double.buffer);
/** The upper word of sqrt(1/2). */
const SQRT_HALF = 0x3fe6a09e;

export function copysign(a: number, b: number): number {
  const magnitude = Math.abs(a);
  return b < 0 || (b === 0 && 1 / b < 0) ? -magnitude : magnitude;
}

export function power2(n: number): number {
  words[0] = 0;
  words[1] = (n + 1023) << 20;
  return double[0]!;
}

export function exponent(x: number): number {
  double[0] = x;
  return (words[1]! - SQRT_HALF) >> 20;
}
