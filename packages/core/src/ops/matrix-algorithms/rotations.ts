/** Givens' rotations of rows. */
import type { HostKernels, RotateRows } from "../../backend/host-kernels";

/** Rotations that wait at most: many at once stay in the caches. */
const MOST_WAITING = 1 << 15;

/** Rotates the rows of a matrix of `width` columns, at the latest when it is told to finish. */
export class Rotations {
  readonly #given: RotateRows;
  readonly #run: HostKernels["rotateRows"];
  #count = 0;

  constructor(rows: Float64Array, width: number, kernels?: HostKernels) {
    this.#run = kernels?.rotateRows ?? rotateRows;
    const waiting = Math.min(MOST_WAITING, rows.length);
    this.#given = {
      rows,
      height: rows.length / width,
      width,
      firsts: new Int32Array(waiting),
      seconds: new Int32Array(waiting),
      cosines: new Float64Array(waiting),
      sines: new Float64Array(waiting),
      count: 0,
    };
  }

  /** The first becomes c * first + s * second, the second c * second - s * first. */
  add(first: number, second: number, c: number, s: number): void {
    const { firsts, seconds, cosines, sines } = this.#given;
    if (this.#count === firsts.length) this.finish();
    firsts[this.#count] = first;
    seconds[this.#count] = second;
    cosines[this.#count] = c;
    sines[this.#count] = s;
    this.#count++;
  }

  finish(): void {
    if (this.#count > 0) this.#run({ ...this.#given, count: this.#count });
    this.#count = 0;
  }
}

/** Two pairs at a time, where they share a row, save a third of the memory's traffic. */
export function rotateRows({ rows, width, firsts, seconds, cosines, sines, count }: RotateRows): void {
  for (let k = 0; k < count; k++) {
    const [a, b, c, s] = [firsts[k]! * width, seconds[k]! * width, cosines[k]!, sines[k]!];
    const isShared = k + 1 < count && firsts[k + 1] === seconds[k] && seconds[k + 1] !== firsts[k];
    if (!isShared) rotatePair(rows, width, a, b, c, s);
    else rotateThree(rows, width, a, b, seconds[k + 1]! * width, c, s, cosines[k + 1]!, sines[k + 1]!);
    if (isShared) k++;
  }
}

function rotatePair(rows: Float64Array, width: number, a: number, b: number, c: number, s: number): void {
  for (let i = 0; i < width; i++) {
    const x = rows[a + i]!;
    const y = rows[b + i]!;
    rows[a + i] = c * x + s * y;
    rows[b + i] = c * y - s * x;
  }
}

function rotateThree(
  rows: Float64Array,
  width: number,
  a: number,
  b: number,
  last: number,
  c: number,
  s: number,
  c2: number,
  s2: number,
): void {
  for (let i = 0; i < width; i++) {
    const x = rows[a + i]!;
    const y = rows[b + i]!;
    const z = rows[last + i]!;
    const between = c * y - s * x;
    rows[a + i] = c * x + s * y;
    rows[b + i] = c2 * between + s2 * z;
    rows[last + i] = c2 * z - s2 * between;
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
