/** The wire format of protocol buffers: varints, and fields that are numbers or lengths followed by bytes. */
import type { ByteCursor } from "../bytes/cursor";

/** A field whose payload the cursor stands at; a varint is already read. */
export type Field =
  | { readonly number: number; readonly kind: "varint"; readonly value: number }
  | { readonly number: number; readonly kind: "bytes"; readonly end: number };

/** Reads a 64-bit varint, two's complement. @throws OptError CORRUPT outside of the exact integers */
async function readVarint(cursor: ByteCursor): Promise<number> {
  if (!cursor.has(10)) await cursor.need(Math.min(10, Math.max(1, cursor.remaining)));
  let bits = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = cursor.uint8();
    bits |= BigInt(byte & 127) << shift;
    if (byte >= 128) continue;
    const value = Number(BigInt.asIntN(64, bits));
    if (!Number.isSafeInteger(value)) throw cursor.corrupt(`a number of ${value} is named`);
    return value;
  }
  throw cursor.corrupt("a number does not end");
}

/** Calls `visit` with every field up to `end`; what it leaves of a payload is stepped over. @throws OptError CORRUPT */
export async function eachField(
  cursor: ByteCursor,
  end: number,
  visit: (field: Field) => Promise<void> | void,
): Promise<void> {
  while (cursor.position < end) {
    const key = await readVarint(cursor);
    const [number, wire] = [Math.floor(key / 8), key % 8];
    if (number < 1) throw cursor.corrupt("a field has no number");
    if (wire === 0) {
      const value = await readVarint(cursor);
      if (cursor.position > end) throw cursor.corrupt("a field is longer than its message");
      await visit({ number, kind: "varint", value });
      continue;
    }
    const length = wire === 2 ? await readVarint(cursor) : wire === 1 ? 8 : wire === 5 ? 4 : -1;
    const fieldEnd = cursor.position + length;
    if (length < 0 || fieldEnd > end) throw cursor.corrupt("a field is longer than its message, or of no known kind");
    await visit({ number, kind: "bytes", end: fieldEnd });
    if (cursor.position > fieldEnd) throw cursor.corrupt("a message is longer than its field");
    cursor.skip(fieldEnd - cursor.position);
  }
}

/** The text of a bytes field. @throws OptError CORRUPT above `longest` bytes */
export async function readText(cursor: ByteCursor, end: number, longest: number): Promise<string> {
  const length = end - cursor.position;
  if (length > longest) throw cursor.corrupt(`a name of ${length} bytes is given`);
  await cursor.need(length);
  return new TextDecoder().decode(cursor.take(length));
}

const MOST_DIMENSIONS = 64;

/** Adds what a field has of a list of dimensions, packed or not. @throws OptError CORRUPT for too many */
export async function readDims(cursor: ByteCursor, field: Field, dims: number[]): Promise<void> {
  if (field.kind === "varint") dims.push(field.value);
  else while (cursor.position < field.end) dims.push(await readVarint(cursor));
  if (dims.length > MOST_DIMENSIONS) throw cursor.corrupt("a list of dimensions is too long");
}

/** The bytes of a varint. */
export function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return bytes;
}

/** The head of a field that holds bytes: its number and their length. */
export function lengthHead(number: number, length: number): number[] {
  return [...varint(number * 8 + 2), ...varint(length)];
}
