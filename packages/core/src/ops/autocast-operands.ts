/** Mixed precision: operands in the dtypes that autocast computes in. */
import { tidy } from "../device/scope";
import { autocastDType } from "../tensor/autocast";
import type { Tensor } from "../tensor/tensor";
import { type DType, isFloat } from "../values/dtype";
import { cast } from "./cast";
import { checkTensor } from "./check-tensor";

/** Floats but float64 in autocast's dtype; others, and all outside of autocast, as they are. For layers that add a bias to a product. */
export function lowered(x: Tensor): Tensor {
  checkTensor("lowered", x);
  return isCast(x.dtype, autocastDType()) ? cast(x, autocastDType()!) : x;
}

/** 16-bit floats within autocast in float32, and integers everywhere; others, and floats outside of autocast, as they are. For losses. */
export function widened(x: Tensor): Tensor {
  checkTensor("widened", x);
  return cast(x, isFloat(x.dtype) ? widenedDType(x.dtype) : "f32");
}

/** An op on operands in autocast's dtype; null where they are so already, and outside. */
export const inLow = (tensors: readonly Tensor[], op: (...tensors: Tensor[]) => Tensor) =>
  casted(tensors, autocastDType(), op);

/** What an op gives that autocast computes in float32: float32 for 16-bit floats, and all outside of autocast as it is. */
export const widenedDType = (dtype: DType): DType => (isCast(dtype, autocastDType() && "f32") ? "f32" : dtype);

/** An op on operands in float32; null where none has 16 bits, and outside of autocast. */
export const inFloat32 = (tensors: readonly Tensor[], op: (...tensors: Tensor[]) => Tensor) =>
  casted(tensors, autocastDType() && "f32", op);

function casted(tensors: readonly Tensor[], to: DType | null, op: (...tensors: Tensor[]) => Tensor): Tensor | null {
  if (!tensors.some(({ dtype }) => isCast(dtype, to))) return null;
  return tidy(() => op(...tensors.map((x) => (isCast(x.dtype, to) ? cast(x, to!) : x))));
}

const isCast = (from: DType, to: DType | null) =>
  to !== null && from !== to && (from === "f32" || from === "bf16" || from === "f16");
