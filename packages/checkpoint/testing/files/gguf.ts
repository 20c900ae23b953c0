/** Small GGUF files, and one that gguf 0.19 wrote: a block or more of each way to quantize. */
import { fileURLToPath } from "node:url";

export const QUANTS = fileURLToPath(new URL("./gguf/quants.gguf", import.meta.url));

interface MadeTensor {
  readonly name: string;
  readonly dims: readonly number[];
  readonly type: number;
  readonly data: Uint8Array;
}

/** Version 3; values are lists of texts, or numbers of 32 bits. */
export function ggufOf(
  tensors: readonly MadeTensor[],
  values: Readonly<Record<string, readonly string[] | number>>,
  version = 3,
): Uint8Array {
  const uint32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer);
  const uint64 = (value: number) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
  const text = (value: string) => [uint64(Buffer.byteLength(value)), Buffer.from(value)];
  const entries = Object.entries(values).flatMap(([key, value]) => [
    ...text(key),
    ...(typeof value === "number"
      ? [uint32(4), uint32(value)]
      : [uint32(9), uint32(8), uint64(value.length), ...value.flatMap(text)]),
  ]);
  const alignment = Number(values["general.alignment"] ?? 32);
  let begin = 0;
  const padded = (length: number) => Math.ceil(length / alignment) * alignment;
  const infos = tensors.flatMap(({ name, dims, type, data }) => {
    const info = [...text(name), uint32(dims.length), ...dims.map(uint64), uint32(type), uint64(begin)];
    begin += padded(data.length);
    return info;
  });
  const head = Buffer.concat([
    ...[Buffer.from("GGUF"), uint32(version), uint64(tensors.length), uint64(Object.keys(values).length)],
    ...[...entries, ...infos],
  ]);
  const pad = (bytes: Uint8Array) => Buffer.concat([bytes, Buffer.alloc(padded(bytes.length) - bytes.length)]);
  return Buffer.concat([pad(head), ...tensors.map(({ data }) => pad(data))]);
}
