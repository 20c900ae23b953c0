import { crc32, deflateRawSync } from "node:zlib";

export interface ZipOptions {
  /** The compression that members claim; 0 means stored. */
  readonly method?: number;
  /** Deflate them, and say that they have so many bytes more than they do. */
  readonly deflated?: { readonly more?: number };
  /** Give sizes and places as archives above 4 GiB do. */
  readonly zip64?: boolean;
  /** Of the archive, and of each member in its directory. */
  readonly comment?: string;
  /** Bytes of an extra field of another kind, before each member and in its directory. */
  readonly extra?: number;
}

const SEE_ZIP64 = 0xffffffff;

/** A zip of stored members, as PyTorch and Keras write them, or of deflated ones. */
export function zipOf(members: Readonly<Record<string, Uint8Array>>, options: ZipOptions = {}): Uint8Array {
  const { deflated, method = deflated ? 8 : 0, zip64 = false } = options;
  const comment = new TextEncoder().encode(options.comment ?? "");
  const other = options.extra === undefined ? new Uint8Array(0) : record([0x5455, 2], [options.extra, 2]);
  const before = Buffer.concat([other, new Uint8Array(options.extra ?? 0)]);
  const body: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let position = 0;
  for (const [name, content] of Object.entries(members)) {
    const text = new TextEncoder().encode(name);
    const kind = [0, method, 0, 0, crc32(content)];
    const bytes = deflated ? deflateRawSync(content) : content;
    const length = content.length + (deflated?.more ?? 0);
    const sizes = zip64 ? [SEE_ZIP64, SEE_ZIP64] : [bytes.length, length];
    const wide = zip64 ? record([1, 2], [24, 2], [length, 8], [bytes.length, 8], [position, 8]) : new Uint8Array(0);
    const extra = Buffer.concat([before, wide]);
    const local = record(
      [0x04034b50, 4],
      [20, 2],
      ...pairs(kind, [2, 2, 2, 2, 4]),
      ...pairs([bytes.length, length, text.length, before.length], [4, 4, 2, 2]),
    );
    const place = zip64 ? SEE_ZIP64 : position;
    const central = record(
      [0x02014b50, 4],
      [20, 2],
      [20, 2],
      ...pairs(kind, [2, 2, 2, 2, 4]),
      ...pairs([...sizes, text.length, extra.length, comment.length, 0, 0, 0, place], [4, 4, 2, 2, 2, 2, 2, 4, 4]),
    );
    directory.push(central, text, extra, comment);
    body.push(local, text, before, bytes);
    position += local.length + text.length + before.length + bytes.length;
  }
  const count = Object.keys(members).length;
  const length = directory.reduce((sum, part) => sum + part.length, 0);
  const counts: [number, number][] = zip64
    ? [
        [0xffff, 2],
        [0xffff, 2],
      ]
    : [
        [count, 2],
        [count, 2],
      ];
  const where = zip64 ? [SEE_ZIP64, SEE_ZIP64] : [length, position];
  const end = record([0x06054b50, 4], [0, 2], [0, 2], ...counts, ...pairs([...where, comment.length], [4, 4, 2]));
  if (!zip64) return Buffer.concat([...body, ...directory, end, comment]);
  const far = record(
    [0x06064b50, 4],
    [44, 8],
    ...pairs([45, 45, 0, 0], [2, 2, 4, 4]),
    ...pairs([count, count, length, position], [8, 8, 8, 8]),
  );
  const locator = record([0x07064b50, 4], [0, 4], [position + length, 8], [1, 4]);
  return Buffer.concat([...body, ...directory, far, locator, end, comment]);
}

function pairs(values: readonly number[], widths: readonly number[]): [number, number][] {
  return values.map((value, i) => [value, widths[i]!]);
}

/** Little-endian numbers of 2, 4 or 8 bytes, one after another. */
function record(...fields: readonly (readonly [value: number, width: number])[]): Uint8Array {
  const bytes = Buffer.alloc(fields.reduce((sum, [, width]) => sum + width, 0));
  let at = 0;
  for (const [value, width] of fields) {
    if (width === 8) bytes.writeBigUInt64LE(BigInt(value), at);
    else bytes.writeUIntLE(value, at, width);
    at += width;
  }
  return bytes;
}
