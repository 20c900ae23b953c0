/** Memory of the js device: an ArrayBuffer, which is empty once it is freed. */
import type { Memory, Slice } from "../backend/memory";
import type { PackedDType } from "../rule/codebook";
import type { RandomDType } from "../rule/stored";
import { type DType, type TypedArray, viewElements } from "../values/dtype";

export class JsMemory implements Memory {
  constructor(
    public buffer: ArrayBuffer,
    readonly bytes: number,
  ) {}
}

/** Of packed formats the codes. */
export function elements(slice: Slice, dtype: DType | PackedDType | RandomDType): TypedArray {
  return viewElements((slice.memory as JsMemory).buffer, slice.byteOffset, slice.length, dtype);
}
