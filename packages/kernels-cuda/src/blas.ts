/** Matrix products through cuBLAS, in full float32: no TF32. */
import { OptError } from "@opt/core";
import type { ComputeDType } from "@opt/core/backend";
import type { Out } from "./driver";
import type { Gpu } from "./gpu";

type Gemm = (
  handle: number,
  transposeA: number,
  transposeB: number,
  m: number,
  n: number,
  k: number,
  alpha: Float32Array | Float64Array,
  a: number,
  leadingA: number,
  strideA: number,
  b: number,
  leadingB: number,
  strideB: number,
  beta: Float32Array | Float64Array,
  c: number,
  leadingC: number,
  strideC: number,
  batch: number,
) => number;

/** Functions of libcublas. */
export interface BlasTable {
  cublasCreate_v2(handle: Out): number;
  cublasDestroy_v2(handle: number): number;
  cublasSetStream_v2(handle: number, stream: number): number;
  cublasSetMathMode(handle: number, mode: number): number;
  cublasSgemmStridedBatched: Gemm;
  cublasDgemmStridedBatched: Gemm;
}

/** CUBLAS_DEFAULT_MATH: rounds no input. */
const DEFAULT_MATH = 0;
const LARGEST_INT = 2 ** 31 - 1;

export interface Product {
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  readonly dtype: ComputeDType;
  readonly a: number;
  readonly b: number;
  readonly output: number;
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly strideA: number;
  readonly strideB: number;
}

export class Blas {
  private readonly handle: number;
  private readonly one = { f32: Float32Array.of(1), f64: Float64Array.of(1) };
  private readonly zero = { f32: Float32Array.of(0), f64: Float64Array.of(0) };

  constructor(
    private readonly table: BlasTable,
    gpu: Gpu,
  ) {
    const out = new BigUint64Array(1);
    gpu.use();
    this.check(table.cublasCreate_v2(out));
    this.handle = Number(out[0]);
    this.check(table.cublasSetStream_v2(this.handle, gpu.stream));
    this.check(table.cublasSetMathMode(this.handle, DEFAULT_MATH));
  }

  /** cuBLAS counts in 32 bits. */
  static takes({ batch, m, n, k }: Product): boolean {
    return k > 0 && Math.max(batch, m, n, k) <= LARGEST_INT;
  }

  /** Column-major, C row-major is its transpose: C' = op(B)' op(A)'. */
  multiply(product: Product): void {
    const { transposeA, transposeB, dtype, a, b, output, batch, m, n, k, strideA, strideB } = product;
    const gemm = dtype === "f32" ? this.table.cublasSgemmStridedBatched : this.table.cublasDgemmStridedBatched;
    const [leadingB, leadingA] = [transposeB ? k : n, transposeA ? m : k];
    const [one, zero] = [this.one[dtype], this.zero[dtype]];
    this.check(
      gemm(
        ...([this.handle, Number(transposeB), Number(transposeA), n, m, k] as const),
        ...([one, b, leadingB, strideB, a, leadingA, strideA, zero, output, n, m * n, batch] as const),
      ),
    );
  }

  close(): void {
    this.table.cublasDestroy_v2(this.handle);
  }

  private check(status: number): void {
    if (status === 0) return;
    throw new OptError(
      "DEVICE_ERROR",
      "cuda matmul",
      `cuBLAS ended with status ${status}.`,
      "Unset OPT_CUDA_LIBRARIES to go without it.",
    );
  }
}
