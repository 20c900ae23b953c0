/** The header of a safetensors file that is to be written. */
import { check } from "@opt/core";
import { elementCount } from "../layout/box";
import { bytesPerElement, type StoredDType } from "./dtype";
import { listText } from "./json/plain";

/** The format's own limit. */
export const MAX_HEADER_BYTES = 100_000_000;

export interface HeaderEntry {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
}

/** The first bytes of a file, padded with spaces to a multiple of `align`, and where each tensor begins; the last of `begins` is the end. */
export function encodeSafetensorsHeader(
  tensors: Iterable<HeaderEntry>,
  metadata: Readonly<Record<string, string>> = {},
  align = 64,
): { bytes: Uint8Array; begins: Float64Array } {
  const names = new Set(["__metadata__"]);
  const ends = [0];
  const members = Object.keys(metadata).length > 0 ? [`"__metadata__":${JSON.stringify(metadata)}`] : [];
  for (const { name, dtype, shape } of tensors) {
    const begin = ends.at(-1)!;
    const end = begin + elementCount(shape)! * bytesPerElement(dtype);
    ends.push(end);
    names.add(name);
    members.push(
      `${JSON.stringify(name)}:{"dtype":"${dtype}","shape":${listText(shape)},"data_offsets":[${begin},${end}]}`,
    );
  }
  check(
    names.size === ends.length,
    "DUPLICATE",
    "safetensors",
    () => "every tensor must have its own name, and none be __metadata__.",
    "Rename.",
  );
  const json = new TextEncoder().encode(`{${members.join(",")}}`);
  const length = Math.ceil((8 + json.length) / align) * align;
  check(
    length - 8 <= MAX_HEADER_BYTES,
    "BAD_ARGUMENT",
    "safetensors",
    () => `a header must be at most ${MAX_HEADER_BYTES} bytes.`,
    "Use more files.",
  );
  const bytes = new Uint8Array(length).fill(0x20);
  bytes.set(json, 8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length - 8), true);
  return { bytes, begins: Float64Array.from(ends, (end) => length + end) };
}
