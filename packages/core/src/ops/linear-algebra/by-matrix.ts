/** Algorithms of the host on each matrix of a batch, in float64. */
import type { HostKernels } from "../../backend/host-kernels";
import { check } from "../../errors/errors";
import type { Tensor } from "../../tensor/tensor";
import { type Shape, sizeOf } from "../../values/shape";
import { byHost } from "../by-host";

/**
 * What `body` makes of each matrix a [m, n] of x [..., m, n], which it may overwrite: a result of each shape, after the batch's axes, rounded
 * to x's dtype. Without a gradient.
 *
 * @throws OptError UNSUPPORTED
 */
export function byMatrix(
  where: string,
  x: Tensor,
  shapes: readonly Shape[],
  body: (a: Float64Array, results: readonly Float64Array[], kernels?: HostKernels) => void,
): Tensor[] {
  const batch = x.shape.slice(0, -2);
  const size = sizeOf(x.shape.slice(-2));
  const count = sizeOf(batch);
  const whole = shapes.map((own) => [...batch, ...own]);
  return byHost(where, x, whole, (given, rounded, kernels) => {
    for (let i = 0; i < count; i++) {
      const results = shapes.map((own) => new Float64Array(sizeOf(own)));
      body(new Float64Array(given.subarray(i * size, (i + 1) * size)), results, kernels);
      for (const [k, result] of results.entries()) rounded[k]!.set(result, i * result.length);
    }
  });
}

/** @throws OptError BAD_ARGUMENT */
export function checkFinite(where: string, a: Float64Array): void {
  let at = 0;
  while (at < a.length && a[at]! - a[at]! === 0) at++; // only finite numbers less themselves are 0
  check(
    at === a.length,
    "BAD_ARGUMENT",
    where,
    () => `elements must be finite, got ${a[at]}.`,
    "Look for NaN with isfinite(x).",
  );
}

/** Its lower triangle alone is read: sets zeros above it. @throws OptError BAD_ARGUMENT unless it is finite */
export function checkTriangle(where: string, a: Float64Array, n: number): void {
  for (let i = 0; i < n; i++) a.fill(0, i * n + i + 1, i * n + n);
  checkFinite(where, a);
}

/** The matrix a [m, n] transposed. */
export function turned(a: Float64Array, m: number, n: number): Float64Array {
  const result = new Float64Array(a.length);
  for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) result[j * m + i] = a[i * n + j]!;
  return result;
}
