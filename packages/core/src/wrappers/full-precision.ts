/** What wrappers that write parameters themselves can wrap. */
import { check } from "../errors/errors";
import type { Tensor } from "../tensor/tensor";

/** Master weights would have to follow what is written. @throws OptError UNSUPPORTED for parameters of other dtypes than f32 and f64 */
export function checkFullPrecision(where: string, params: readonly Tensor[]): void {
  for (const { dtype } of params) {
    const isFull = dtype === "f32" || dtype === "f64";
    check(
      isFull,
      "UNSUPPORTED",
      where,
      () => `parameters must be f32 or f64, got ${dtype}.`,
      "Train in f32 with autocast.",
    );
  }
}
