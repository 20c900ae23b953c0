/** Matrix products through cuBLAS, in full float32: no TF32. Whatever it fails at, kernels of ours do. */
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

export const BLAS_FUNCTIONS = [
  ...(["cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSetMathMode"] as const),
  ...(["cublasSgemmStridedBatched", "cublasDgemmStridedBatched"] as const),
] satisfies readonly (keyof BlasTable)[];

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
  private table: BlasTable | undefined;
  private handle = 0;
  private isOpened = false;
  private readonly one = { f32: Float32Array.of(1), f64: Float64Array.of(1) };
  private readonly zero = { f32: Float32Array.of(0), f64: Float64Array.of(0) };

  /** `find` is asked at the first product. */
  constructor(
    private readonly find: () => BlasTable | undefined,
    private readonly gpu: Gpu,
  ) {}

  /** Opens it unless that was tried before: not while a step is being recorded, for it allocates. */
  prepare(): void {
    if (this.isOpened) return;
    this.isOpened = true;
    const table = this.find();
    if (table === undefined) return;
    this.gpu.use();
    const out = new BigUint64Array(1);
    if (!this.succeeds(table.cublasCreate_v2(out), "does not start")) return;
    this.handle = Number(out[0]);
    this.table = table;
    const { gpu, handle } = this;
    const status = table.cublasSetStream_v2(handle, gpu.stream) || table.cublasSetMathMode(handle, DEFAULT_MATH);
    if (!this.succeeds(status, "cannot be set up")) this.close();
  }

  /** Column-major, C row-major is its transpose: C' = op(B)' op(A)'. False if it was not done. */
  multiply(product: Product): boolean {
    this.prepare();
    const { transposeA, transposeB, dtype, a, b, output, batch, m, n, k, strideA, strideB } = product;
    // cuBLAS counts in 32 bits.
    if (this.table === undefined || k === 0 || Math.max(batch, m, n, k) > LARGEST_INT) return false;
    const gemm = dtype === "f32" ? this.table.cublasSgemmStridedBatched : this.table.cublasDgemmStridedBatched;
    const [leadingB, leadingA] = [transposeB ? k : n, transposeA ? m : k];
    const [one, zero] = [this.one[dtype], this.zero[dtype]];
    const status = gemm(
      ...([this.handle, Number(transposeB), Number(transposeA), n, m, k] as const),
      ...([one, b, leadingB, strideB, a, leadingA, strideA, zero, output, n, m * n, batch] as const),
    );
    if (this.succeeds(status, "failed in a product")) return true;
    this.close();
    return false;
  }

  close(): void {
    this.table?.cublasDestroy_v2(this.handle);
    this.table = undefined;
  }

  private succeeds(status: number, what: string): boolean {
    if (status === 0) return true;
    process.emitWarning(`cuBLAS ${what} (status ${status}): kernels of ours multiply matrices on ${this.gpu.where}.`, {
      code: "OPT_CUDA_BLAS",
    });
    return false;
  }
}
