import { crc32 } from "node:zlib";

/** A zip of stored members, as PyTorch and Keras write them; `method` claims another compression. */
export function zipOf(members: Readonly<Record<string, Uint8Array>>, { method = 0 } = {}): Uint8Array {
  const body: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let position = 0;
  for (const [name, bytes] of Object.entries(members)) {
    const text = new TextEncoder().encode(name);
    const common = [0, 0, method, 0, 0, crc32(bytes), bytes.length, bytes.length];
    const local = record(0x04034b50, [20, ...common.slice(1), text.length, 0], [2, 2, 2, 2, 2, 4, 4, 4, 2, 2]);
    const central = [20, 20, ...common.slice(1), text.length, 0, 0, 0, 0, 0, position];
    directory.push(record(0x02014b50, central, [2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 2, 2, 2, 2, 4, 4]), text);
    body.push(local, text, bytes);
    position += local.length + text.length + bytes.length;
  }
  const count = Object.keys(members).length;
  const length = directory.reduce((sum, part) => sum + part.length, 0);
  const end = record(0x06054b50, [0, 0, count, count, length, position, 0], [2, 2, 2, 2, 4, 4, 2]);
  return Buffer.concat([...body, ...directory, end]);
}

function record(signature: number, values: readonly number[], widths: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(4 + widths.reduce((sum, width) => sum + width, 0));
  bytes.writeUInt32LE(signature, 0);
  let at = 4;
  for (const [i, width] of widths.entries()) {
    bytes.writeUIntLE(values[i]! >>> 0, at, width);
    at += width;
  }
  return bytes;
}
