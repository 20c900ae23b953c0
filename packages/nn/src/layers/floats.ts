/** The dtypes of layers that compute with floats alone. */
import type { DType, Tensor } from "@opt/core";

const FLOATS: readonly DType[] = ["f64", "f32", "f16", "bf16"];

/** Of the result: integers give float32. */
export const floatOf = (dtype: DType): DType => (FLOATS.includes(dtype) ? dtype : "f32");

/** In the dtype that is computed in: float64 or float32. */
export const inFloats = (x: Tensor): Tensor => x.to(x.dtype === "f64" ? "f64" : "f32");
