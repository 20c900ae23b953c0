import type { StoredDType } from "../src/format/dtype";
import type { Json, TensorSource } from "../src/format/source";
import { wholeTensor } from "../src/formats/bytes/foreign-tensor";
import { memorySource } from "../src/formats/bytes/source";

export interface GivenTensor {
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
  readonly dtype?: StoredDType;
}

/** A source of tensors in memory, for tests. */
export function sourceOf(
  tensors: Readonly<Record<string, GivenTensor>>,
  { format = "test", values = {} }: { format?: string; values?: Record<string, Json> } = {},
): TensorSource {
  const whole = Object.entries(tensors).map(([name, { shape, data, dtype = "F32" }]) => {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    return wholeTensor(name, { dtype, shape, bytes: memorySource("memory", bytes) }, "memory");
  });
  return {
    format,
    path: "memory",
    tensors: new Map(whole.map((tensor) => [tensor.name, tensor])),
    values,
    close: async () => undefined,
  };
}
