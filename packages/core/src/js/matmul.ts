/** Batched matrix product, accumulated in float64, and its epilogue: a map of the product. */
import type { Kernel, Launch, LaunchArguments, Specs } from "../backend/spec";
import type { TypedArray } from "../values/dtype";
import type { MapFunction } from "./compile";
import { elements } from "./memory";
import { forEachRow } from "./strided";

export interface MatmulKernel extends Kernel<"matmul"> {
  readonly epilogue?: MapFunction;
}

export function matmul(launch: Launch<"matmul">): void {
  const { spec, epilogue: apply } = launch.kernel as MatmulKernel;
  const { epilogue, output, batch, m, n } = launch;
  const out = elements(output, spec.dtype);
  // The output may be an operand, which the product must not overwrite.
  const product = epilogue?.product ? elements(epilogue.product, spec.dtype) : epilogue ? out.slice() : out;
  multiply(spec, launch, product);
  if (apply === undefined || epilogue === undefined) return;
  const arrays = [product, ...epilogue.operands.map((operand) => elements(operand, spec.dtype))];
  const strides = [[m * n, n, 1], ...epilogue.strides];
  const steps = strides.map((stride) => stride[2]!);
  forEachRow([batch, m, n], strides, (bases, row) => apply(arrays, bases, steps, out, row * n, n, epilogue.scalars));
}

function multiply(
  { dtype, transposeA, transposeB }: Specs["matmul"],
  { a, b, batch, m, n, k, strideA, strideB }: LaunchArguments["matmul"],
  C: TypedArray,
): void {
  const A = elements(a, dtype);
  const B = elements(b, dtype);
  const [rowStep, innerStep] = transposeA ? [1, m] : [k, 1];
  const row = new Float64Array(n);
  for (let t = 0; t < batch; t++) {
    const originB = t * strideB;
    for (let i = 0; i < m; i++) {
      const originA = t * strideA + i * rowStep;
      if (transposeB) {
        for (let j = 0; j < n; j++) {
          let sum = 0;
          for (let p = 0; p < k; p++) sum += A[originA + p * innerStep]! * B[originB + j * k + p]!;
          row[j] = sum;
        }
      } else {
        row.fill(0);
        for (let p = 0; p < k; p++) {
          const x = A[originA + p * innerStep]!;
          const rowB = originB + p * n;
          for (let j = 0; j < n; j++) row[j]! += x * B[rowB + j]!;
        }
      }
      C.set(row, (t * m + i) * n);
    }
  }
}
