/** The moves of bits that functions are made of, as functions of JavaScript. */
const double = new Float64Array(1);
/** Its words, low one first: every platform of JavaScript is little-endian. */
const words = new Int32Array(double.buffer);
/** Upper words of 1 and of sqrt(1/2). */
const [ONE, SQRT_HALF] = [0x3ff00000, 0x3fe6a09e];

export function flipsign(a: number, b: number): number {
  return b < 0 || (b === 0 && 1 / b < 0) ? -a : a;
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

export function significand(x: number): number {
  double[0] = x;
  words[1] = ((words[1]! + ONE - SQRT_HALF) & 0xfffff) + SQRT_HALF;
  return double[0]!;
}
