/** Rules that change gradients in place: one launch for each device and dtype. 16-bit gradients are read and written as they are stored. */
import type { Scalar } from "../backend/memory";
import type { Rule } from "../rule/rule";
import type { StoredFormats } from "../rule/stored";
import type { Tensor } from "../tensor/tensor";
import { type ComputeDType, type DType, numbersOf } from "../values/dtype";

/** The dtype in which a rule computes tensors of a dtype, and their stored format if it is another. */
function formatOf(of: DType): { dtype: ComputeDType; stored?: StoredFormats } {
  const [dtype] = numbersOf(of);
  if (dtype === "f32" || dtype === "f64") return { dtype };
  return { dtype: "f32", stored: [dtype as "bf16" | "f16"] };
}

/** Applies a rule of one buffer and one scalar. */
export function launchInPlace(rule: Rule, tensors: readonly Tensor[], scalar: (dtype: DType) => Scalar): void {
  for (const device of new Set(tensors.map((tensor) => tensor.device))) {
    const here = tensors.filter((tensor) => tensor.device === device);
    for (const dtype of new Set(here.map((tensor) => tensor.dtype))) {
      const mine = here.filter((tensor) => tensor.dtype === dtype);
      const kernel = device.kernel({ kind: "rule", rule, ...formatOf(dtype) });
      const slices = mine.map((tensor) => [tensor.memorySlice()]);
      device.launch({ kind: "rule", kernel, tensors: slices, scalars: [scalar(dtype)] });
      for (const { storage } of mine) storage.overwritten();
    }
  }
}
