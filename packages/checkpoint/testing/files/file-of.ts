/** Opened files as rules of names see them. */
import type { Role, SourceTensor, TensorSource } from "../../src/format/source";
import { wholeTensor } from "../../src/formats/bytes/foreign-tensor";
import { memorySource } from "../../src/formats/bytes/source";

export type Numbers = Float32Array | Int32Array | BigInt64Array | Uint8Array;

const DTYPES = { Float32Array: "F32", Int32Array: "I32", BigInt64Array: "I64", Uint8Array: "U8" } as const;

/** A file of one-dimensional tensors, or of those whose shapes are given, that was never on a disk. */
export function fileOf(
  format: string,
  tensors: Record<string, Numbers | { numbers: Numbers; shape?: number[]; role?: Role; follows?: string }>,
  more: Partial<TensorSource> = {},
): TensorSource {
  const made = Object.entries(tensors).map(([name, given]): [string, SourceTensor] => {
    const { numbers, shape = [numbers.length], ...role } = ArrayBuffer.isView(given) ? { numbers: given } : given;
    const dtype = DTYPES[numbers.constructor.name as keyof typeof DTYPES];
    const bytes = memorySource("a", new Uint8Array(numbers.buffer.slice(0) as ArrayBuffer));
    return [name, { ...wholeTensor(name, { dtype, shape, bytes }, "a"), ...role }];
  });
  return { format, path: "a", tensors: new Map(made), values: {}, async close() {}, ...more };
}
