/** The header of a safetensors file that is to be written. */
import { OptError } from "@opt/core";
import { elementCount } from "../layout/box";
import { bytesPerElement, type StoredDType } from "./dtype";

/** The format's own limit. */
export const MAX_HEADER_BYTES = 100_000_000;

/**
 * The first bytes of a file that holds these tensors in this order, end to end, and where each begins in it; the last of `begins` is where
 * the file ends. The header is padded with spaces so that the data begin at a multiple of `align` bytes.
 */
export function encodeSafetensorsHeader(
  tensors: readonly { name: string; dtype: StoredDType; shape: readonly number[] }[],
  metadata: Readonly<Record<string, string>> = {},
  align = 64,
): { bytes: Uint8Array; begins: Float64Array } {
  const names = new Set(tensors.map(({ name }) => name));
  if (names.size < tensors.length || names.has("__metadata__")) {
    throw new OptError(
      "DUPLICATE",
      "safetensors",
      "every tensor must have its own name, and none be __metadata__.",
      "Rename.",
    );
  }
  const members = Object.keys(metadata).length > 0 ? [`"__metadata__":${JSON.stringify(metadata)}`] : [];
  const begins = new Float64Array(tensors.length + 1);
  tensors.forEach(({ name, dtype, shape }, i) => {
    const begin = begins[i]!;
    const end = begin + elementCount(shape)! * bytesPerElement(dtype);
    begins[i + 1] = end;
    members.push(`${JSON.stringify(name)}:{"dtype":"${dtype}","shape":[${shape}],"data_offsets":[${begin},${end}]}`);
  });
  const json = new TextEncoder().encode(`{${members.join(",")}}`);
  const length = Math.ceil((8 + json.length) / align) * align;
  if (length - 8 > MAX_HEADER_BYTES) {
    throw new OptError(
      "BAD_ARGUMENT",
      "safetensors",
      `a header must be at most ${MAX_HEADER_BYTES} bytes.`,
      "Use more files.",
    );
  }
  const bytes = new Uint8Array(length).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length - 8), true);
  bytes.set(json, 8);
  for (let i = 0; i < begins.length; i++) begins[i]! += length;
  return { bytes, begins };
}
