/** Stored numbers as Tensors hold them. */
import { type DType, OptError, type Tensor, tensorFromBytes } from "@opt/core";
import { isFloating, type StoredDType, tensorDType } from "../format/dtype";

/** A Tensor of loaded bytes. Throws UNSUPPORTED for what tensors cannot hold. */
export function toTensor(name: string, dtype: StoredDType, shape: readonly number[], bytes: Uint8Array): Tensor {
  return tensorFromBytes(bytes, [...shape], { dtype: heldDType(name, dtype) });
}

/** The dtype of a Tensor that is loaded. Throws UNSUPPORTED for what tensors cannot hold. */
export function heldDType(name: string, dtype: StoredDType): DType {
  const core = tensorDType(dtype);
  if (core) return core;
  throw new OptError("UNSUPPORTED", whereOf(name), `tensors cannot hold ${dtype}.`, otherDType(name, dtype));
}

export function whereOf(name: string): string {
  return `tensor ${JSON.stringify(name)}`;
}

/** How to load what tensors cannot hold. By name: one dtype for all is not meant for counters and masks. */
export function otherDType(name: string, dtype: StoredDType): string {
  const other = isFloating(dtype) ? "f32" : "f64";
  return `Ask for another with { dtype: { ${JSON.stringify(name)}: "${other}" } }, or for plain data with { as: "plain" }.`;
}
