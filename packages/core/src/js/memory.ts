/** Memory of the js device: an ArrayBuffer. */
import type { Memory, Slice } from "../backend/memory";
import { type DType, type TypedArray, viewElements } from "../values/dtype";

export class JsMemory implements Memory {
  constructor(
    readonly buffer: ArrayBuffer,
    readonly bytes: number,
  ) {}
}

export function elements(slice: Slice, dtype: DType): TypedArray {
  return viewElements((slice.memory as JsMemory).buffer, slice.byteOffset, slice.length, dtype);
}
