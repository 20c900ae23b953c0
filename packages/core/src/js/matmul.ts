/**
 * Batched matrix product and its epilogue, a map of the product. It defines the words that every exact device gives: k is cut into
 * equal pieces, a piece is a chain of fused multiply-adds in ascending k, and the pieces' sums are added in order.
 */
import type { Kernel, Launch, LaunchArguments, Specs } from "../backend/spec";
import { fma32, fma64 } from "../rule/fma";
import type { ComputeDType, TypedArray } from "../values/dtype";
import type { MapFunction } from "./compile";
import { elements } from "./memory";
import { reduce } from "./reduce";
import { forEachRow } from "./strided";

/** Steps along k of the longest chain: 2 KiB of a row. */
export const LONGEST_CHAIN = { f32: 512, f64: 256 };

interface MatmulKernel extends Kernel<"matmul"> {
  readonly epilogue?: MapFunction;
}

export function matmul(launch: Launch<"matmul">): void {
  const { spec, epilogue: apply } = launch.kernel as MatmulKernel;
  const dtype = spec.dtype as ComputeDType;
  const { epilogue, output, batch, m, n } = launch;
  if (launch.sums) reduce("sum", dtype, { input: launch.a, output: launch.sums, outer: 1, length: launch.k, inner: m });
  const out = elements(output, dtype);
  // The output may be an operand, which the product must not overwrite.
  const product = epilogue?.product ? elements(epilogue.product, dtype) : epilogue ? out.slice() : out;
  multiply({ ...spec, dtype }, elements(launch.a, dtype), elements(launch.b, dtype), product, launch);
  if (apply === undefined || epilogue === undefined) return;
  const arrays = [product, ...epilogue.operands.map((operand) => elements(operand, dtype))];
  const strides = [[m * n, n, 1], ...epilogue.strides];
  const steps = strides.map((stride) => stride[2]!);
  forEachRow([batch, m, n], strides, (bases, row) => apply(arrays, bases, steps, out, row * n, n, epilogue.scalars));
}

type Transposes = Pick<Specs["matmul"], "transposeA" | "transposeB">;
type Sizes = Pick<LaunchArguments["matmul"], "batch" | "m" | "n" | "k" | "strideA" | "strideB">;

/** C = op(A) op(B). */
export function multiply(
  { dtype, transposeA, transposeB }: Transposes & { dtype: ComputeDType },
  A: TypedArray,
  B: TypedArray,
  C: TypedArray,
  { batch, m, n, k, strideA, strideB }: Sizes,
): void {
  const chains = dtype === "f32" ? chains32 : chains64;
  const sums = C.slice(0, n);
  const [rowA, stepA] = transposeA ? [1, m] : [k, 1];
  const [columnB, stepB] = transposeB ? [k, 1] : [1, n];
  C.fill(0);
  for (let t = 0; t < batch; t++) {
    for (const [from, to] of piecesOf(k, dtype)) {
      const b = t * strideB + from * stepB;
      for (let i = 0; i < m; i++) {
        const a = t * strideA + i * rowA + from * stepA;
        chains(sums, to - from, A, a, stepA, B, b, stepB, columnB);
        const row = (t * m + i) * n;
        if (from === 0) C.set(sums, row);
        else for (let j = 0; j < n; j++) C[row + j]! += sums[j]!;
      }
    }
  }
}

/** The pieces that k is cut into, as equal as can be. */
function piecesOf(k: number, dtype: ComputeDType): (readonly [from: number, to: number])[] {
  const count = Math.ceil(k / LONGEST_CHAIN[dtype]);
  return Array.from({ length: count }, (_, i) => [Math.floor((k * i) / count), Math.floor((k * (i + 1)) / count)]);
}

/** For every column j: sums[j] = the chain of A[a + p * stepA] * B[b + j * columnB + p * stepB] for p in [0, length). */
type Chains = (
  sums: TypedArray,
  length: number,
  A: TypedArray,
  a: number,
  stepA: number,
  B: TypedArray,
  b: number,
  stepB: number,
  columnB: number,
) => void;

const TO_25_BITS = 2 ** 28 + 1;

/**
 * Rounding the float64 sum gives the same, unless it lies midway between two float32: then it has 25 bits or fewer
 * (Veltkamp's splitting returns it) and is no float32. Midpoints are rare: the loop, of four columns to hide latency, only
 * notes one (a branch that assigns a call's result would box the sums), and the columns are done again.
 */
const chains32: Chains = (sums, length, A, a, stepA, B, b, stepB, columnB) => {
  const n = sums.length;
  let j = 0;
  for (; j + 1 < n; j += 4) {
    let [c0, c1, c2, c3] = [0, 0, 0, 0];
    // In place of columns behind the last, that one again.
    const last = n - 1 - j;
    let b0 = b + j * columnB;
    let b1 = b0 + columnB;
    let b2 = b0 + Math.min(2, last) * columnB;
    let b3 = b0 + Math.min(3, last) * columnB;
    let hasMidpoint = false;
    for (let p = 0, at = a; p < length; p++, at += stepA) {
      const x = A[at]!;
      const s0 = x * B[b0]! + c0;
      const s1 = x * B[b1]! + c1;
      const s2 = x * B[b2]! + c2;
      const s3 = x * B[b3]! + c3;
      c0 = Math.fround(s0);
      c1 = Math.fround(s1);
      c2 = Math.fround(s2);
      c3 = Math.fround(s3);
      const t0 = s0 * TO_25_BITS;
      const t1 = s1 * TO_25_BITS;
      const t2 = s2 * TO_25_BITS;
      const t3 = s3 * TO_25_BITS;
      if (t0 - (t0 - s0) === s0 && c0 !== s0) hasMidpoint = true;
      if (t1 - (t1 - s1) === s1 && c1 !== s1) hasMidpoint = true;
      if (t2 - (t2 - s2) === s2 && c2 !== s2) hasMidpoint = true;
      if (t3 - (t3 - s3) === s3 && c3 !== s3) hasMidpoint = true;
      b0 += stepB;
      b1 += stepB;
      b2 += stepB;
      b3 += stepB;
    }
    sums[j] = c0;
    sums[j + 1] = c1;
    if (last > 1) sums[j + 2] = c2;
    if (last > 2) sums[j + 3] = c3;
    if (hasMidpoint) exactly32(j, Math.min(j + 4, n), sums, length, A, a, stepA, B, b, stepB, columnB);
  }
  if (j < n) exactly32(j, n, sums, length, A, a, stepA, B, b, stepB, columnB);
};

/** Columns [first, end) of `chains32`, midpoints included. */
function exactly32(
  first: number,
  end: number,
  ...[sums, length, A, a, stepA, B, b, stepB, columnB]: Parameters<Chains>
): void {
  for (let j = first; j < end; j++) {
    let sum = 0;
    let at = b + j * columnB;
    for (let p = 0; p < length; p++, at += stepB) sum = Math.fround(fma32(A[a + p * stepA]!, B[at]!, sum));
    sums[j] = sum;
  }
}

const SPLITTER = 2 ** 27 + 1;
/** More than the relative error of a sum of two errors. */
const UP = 1 + 2 ** -51;
const DOWN = 1 - 2 ** -51;
/** Products above it have an exact error. */
const SMALLEST_PRODUCT = 2 ** -900;

const chains64: Chains = (sums, length, A, a, stepA, B, b, stepB, columnB) => {
  const n = sums.length;
  for (let j = 0; j < n; j += 2) {
    let sum = 0;
    let next = 0;
    let at = b + j * columnB;
    // The last of an odd number of columns is done twice.
    const beside = j + 1 < n ? columnB : 0;
    for (let p = 0; p < length; p++, at += stepB) {
      const x = A[a + p * stepA]!;
      const scaled = SPLITTER * x;
      const high = scaled - (scaled - x);
      sum = fused64(x, high, x - high, B[at]!, sum);
      next = fused64(x, high, x - high, B[at + beside]!, next);
    }
    sums[j] = sum;
    if (j + 1 < n) sums[j + 1] = next;
  }
};

/**
 * fma64(x, y, c) for x = high + low (Veltkamp's splitting). The errors of the product (Dekker's) and of the sum (Knuth's) are
 * exact; where both ends of the interval about the sum of the two round alike, so does the exact value between them. Overflow
 * ends in NaN.
 */
function fused64(x: number, high: number, low: number, y: number, c: number): number {
  const product = x * y;
  const scaled = SPLITTER * y;
  const highY = scaled - (scaled - y);
  const lowY = y - highY;
  const productError = low * lowY - (product - high * highY - low * highY - high * lowY);
  const sum = product + c;
  const shadow = sum - product;
  const error = product - (sum - shadow) + (c - shadow) + productError;
  const result = sum + error * UP;
  const isSafe = result - (sum + error * DOWN) === 0 && Math.abs(product) > SMALLEST_PRODUCT;
  return isSafe ? result : fma64(x, y, c) * 1; // `* 1` tells V8 that it is a number: without, it boxes every result
}
