/** What every contender begins with. */

/** Values in (-0.5, 0.5] without an order: what vanishes in a recurrent layer would be subnormal, and slow. */
export function values(length: number, factor: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => {
    const x = i % 9973;
    return ((x * x * 31 + i * factor) % 10_007) / 10_007 - 0.5;
  });
}

/** Integers in [0, below), of which the next one is not a function of the last. */
export const integers = (length: number, factor: number, below: number) =>
  Int32Array.from(values(length, factor), (x) => Math.min(below - 1, Math.floor((x + 0.5) * below)));
