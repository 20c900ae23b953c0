/**
 * Batched matrix product and its epilogue, a map of the product. It defines the words that every exact device gives: k is cut into
 * equal pieces, a piece is a chain of fused multiply-adds in ascending k, and the pieces' sums are added in order.
 */
import type { Kernel, Launch, LaunchArguments, Specs } from "../backend/spec";
import { fma32, fma64 } from "../rule/fma";
import type { ComputeDType, TypedArray } from "../values/dtype";
import type { MapFunction } from "./compile";
import { elements } from "./memory";
import { forEachRow } from "./strided";

/** Steps along k of the longest chain: 2 KiB of a row. */
export const LONGEST_CHAIN = { f32: 512, f64: 256 };

export interface MatmulKernel extends Kernel<"matmul"> {
  readonly epilogue?: MapFunction;
}

export function matmul(launch: Launch<"matmul">): void {
  const { spec, epilogue: apply } = launch.kernel as MatmulKernel;
  const { epilogue, output, batch, m, n } = launch;
  const out = elements(output, spec.dtype);
  // The output may be an operand, which the product must not overwrite.
  const product = epilogue?.product ? elements(epilogue.product, spec.dtype) : epilogue ? out.slice() : out;
  multiply(spec, elements(launch.a, spec.dtype), elements(launch.b, spec.dtype), product, launch);
  if (apply === undefined || epilogue === undefined) return;
  const arrays = [product, ...epilogue.operands.map((operand) => elements(operand, spec.dtype))];
  const strides = [[m * n, n, 1], ...epilogue.strides];
  const steps = strides.map((stride) => stride[2]!);
  forEachRow([batch, m, n], strides, (bases, row) => apply(arrays, bases, steps, out, row * n, n, epilogue.scalars));
}

type Sizes = Pick<LaunchArguments["matmul"], "batch" | "m" | "n" | "k" | "strideA" | "strideB">;

/** C = op(A) op(B). */
export function multiply(
  { dtype, transposeA, transposeB }: Specs["matmul"],
  A: TypedArray,
  B: TypedArray,
  C: TypedArray,
  { batch, m, n, k, strideA, strideB }: Sizes,
): void {
  const chain = dtype === "f32" ? chain32 : chain64;
  const sums = C.slice(0, n);
  C.fill(0);
  for (let t = 0; t < batch; t++) {
    const matrix = B.subarray(t * strideB, t * strideB + k * n);
    const right = transposeB ? transposed(matrix, n, k) : matrix;
    for (const [from, to] of piecesOf(k, dtype)) {
      for (let i = 0; i < m; i++) {
        const [origin, step] = transposeA ? [t * strideA + i, m] : [t * strideA + i * k, 1];
        sums.fill(0);
        chain(sums, A, origin, step, right, from, to);
        const row = (t * m + i) * n;
        if (from === 0) C.set(sums, row);
        else for (let j = 0; j < n; j++) C[row + j]! += sums[j]!;
      }
    }
  }
}

/** The pieces that k is cut into, as equal as can be. */
export function piecesOf(k: number, dtype: ComputeDType): (readonly [from: number, to: number])[] {
  const count = Math.ceil(k / LONGEST_CHAIN[dtype]);
  return Array.from({ length: count }, (_, i) => [Math.floor((k * i) / count), Math.floor((k * (i + 1)) / count)]);
}

function transposed(matrix: TypedArray, rows: number, columns: number): TypedArray {
  const result = matrix.slice();
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) result[j * rows + i] = matrix[i * columns + j]!;
  }
  return result;
}

/** For p in [from, to): sums[j] = fma(A[origin + p * step], B[p, j], sums[j]). */
type Chain = (
  sums: TypedArray,
  A: TypedArray,
  origin: number,
  step: number,
  B: TypedArray,
  from: number,
  to: number,
) => void;

const double = new Float64Array(1);
const words = new Int32Array(double.buffer);
const SMALLEST_NORMAL = 2 ** -126;

/** Rounding the float64 sum gives the same, unless it lies midway between two float32 or where float32 is subnormal. */
const chain32: Chain = (sums, A, origin, step, B, from, to) => {
  const n = sums.length;
  for (let p = from; p < to; p++) {
    const x = A[origin + p * step]!;
    const row = p * n;
    for (let j = 0; j < n; j++) {
      const sum = x * B[row + j]! + sums[j]!;
      double[0] = sum;
      const isSafe = (words[0]! & 0x1fffffff) !== 0x10000000 && (Math.abs(sum) >= SMALLEST_NORMAL || sum === 0);
      sums[j] = isSafe ? sum : fma32(x, B[row + j]!, sums[j]!);
    }
  }
};

const chain64: Chain = (sums, A, origin, step, B, from, to) => {
  const n = sums.length;
  for (let p = from; p < to; p++) {
    const x = A[origin + p * step]!;
    for (let j = 0; j < n; j++) sums[j] = fma64(x, B[p * n + j]!, sums[j]!);
  }
};
