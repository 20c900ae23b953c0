/** Givens' rotations of rows. */

/** Cosines and sines of neighbouring rotations: the k-th is of the k-th and the next row on the way. */
export interface Sweep {
  readonly cosines: Float64Array;
  readonly sines: Float64Array;
}

/**
 * Rotates `count` pairs of rows of a matrix of `width` columns one after the other, from row `start` on, upwards or downwards. Of a pair the
 * first becomes c * first + s * second, the second c * second - s * first. Two pairs at a time save a third of the memory's traffic.
 */
export function rotateRows(
  a: Float64Array,
  width: number,
  { cosines, sines }: Sweep,
  start: number,
  count: number,
  direction: 1 | -1,
): void {
  const step = direction * width;
  let k = 0;
  for (; k < count - 1; k += 2) {
    const c = cosines[k]!;
    const s = sines[k]!;
    const c2 = cosines[k + 1]!;
    const s2 = sines[k + 1]!;
    const middle = (start + direction * (k + 1)) * width;
    for (let i = middle; i < middle + width; i++) {
      const x = a[i]!;
      const first = a[i - step]!;
      const last = a[i + step]!;
      const between = c * x - s * first;
      a[i - step] = s * x + c * first;
      a[i] = s2 * last + c2 * between;
      a[i + step] = c2 * last - s2 * between;
    }
  }
  const from = start + direction * k;
  if (k < count) rotatePair(a, width, from, from + direction, cosines[k]!, sines[k]!);
}

/** The first becomes c * first + s * second, the second c * second - s * first. */
export function rotatePair(a: Float64Array, width: number, first: number, second: number, c: number, s: number): void {
  const step = (second - first) * width;
  for (let i = first * width; i < first * width + width; i++) {
    const x = a[i]!;
    const y = a[i + step]!;
    a[i] = c * x + s * y;
    a[i + step] = c * y - s * x;
  }
}

/** sqrt(a^2 + b^2), the same in each engine: Math.hypot is not. */
export function hypotenuse(a: number, b: number): number {
  const [x, y] = [Math.abs(a), Math.abs(b)];
  const large = Math.max(x, y);
  if (large === 0) return 0;
  if (large < 1e150 && large > 1e-140) return Math.sqrt(a * a + b * b);
  const share = Math.min(x, y) / large;
  return large * Math.sqrt(1 + share * share);
}
