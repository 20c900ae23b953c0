/** Zip archives of stored members as PyTorch writes them: contents aligned to 64 bytes, checksums behind them, zip64 where it must be. */
import { crc32 } from "../format/crc32";
import { known, type Part } from "./sequence";

export interface Member {
  readonly name: string;
  /** The bytes themselves, or only their number where they are streamed. */
  readonly content: Uint8Array | number;
}

const ALIGNMENT = 64;
const LARGEST = 0xffffffff;
const LARGEST_COUNT = 0xffff;
/** Bit 3: the checksum stands behind the contents; bit 11: names are UTF-8. */
const FLAGS = 0x0808;
const VERSION = 45;

interface Written {
  readonly name: Uint8Array;
  readonly size: number;
  readonly offset: number;
  crc: number;
}

/** The parts of an archive whose first byte is the first part's. Streamed contents are expected in the order of the members. */
export function zipParts(members: readonly Member[]): Part[] {
  const parts: Part[] = [];
  const written: Written[] = [];
  let position = 0;
  const add = (part: Part): void => {
    parts.push(part);
    position += part.byteLength + part.content;
  };
  for (const { name, content } of members) {
    const size = typeof content === "number" ? content : content.byteLength;
    const entry: Written = { name: new TextEncoder().encode(name), size, offset: position, crc: 0 };
    written.push(entry);
    if (typeof content === "number") {
      add(
        known(localHeader(entry), size, (crc) => {
          entry.crc = crc;
        }),
      );
    } else {
      entry.crc = crc32(content);
      add(known(localHeader(entry)));
      add(known(content));
    }
    add({ byteLength: size > LARGEST ? 24 : 16, head: () => descriptor(entry), content: 0 });
  }
  const begin = position;
  const length = written.reduce((sum, entry) => sum + 46 + entry.name.length + zip64Extra(entry).length, 0);
  const end = endOfDirectory(written.length, begin, length);
  add({ byteLength: length, head: () => join(written.map(centralHeader)), content: 0 });
  add(known(end));
  return parts;
}

function localHeader({ name, size, offset }: Written): Uint8Array {
  const large = size > LARGEST;
  const sizes = large ? record([1, 2], [16, 2], [size, 8], [size, 8]) : new Uint8Array(0);
  // The padding is an extra field of its own, as torch's "FB" is.
  const unpadded = offset + 30 + name.length + sizes.length + 4;
  const padding = (ALIGNMENT - (unpadded % ALIGNMENT)) % ALIGNMENT;
  const extra = join([sizes, record([0x4246, 2], [padding, 2]), new Uint8Array(padding)]);
  const stored = large ? LARGEST : size;
  return join([
    record([0x04034b50, 4], [VERSION, 2], [FLAGS, 2], [0, 2], [0, 4], [0, 4], [stored, 4], [stored, 4]),
    record([name.length, 2], [extra.length, 2]),
    name,
    extra,
  ]);
}

function descriptor({ size, crc }: Written): Uint8Array {
  const width = size > LARGEST ? 8 : 4;
  return record([0x08074b50, 4], [crc, 4], [size, width], [size, width]);
}

function zip64Extra({ size, offset }: Written): Uint8Array {
  const fields: [number, number][] = [];
  if (size > LARGEST) fields.push([size, 8], [size, 8]);
  if (offset > LARGEST) fields.push([offset, 8]);
  return fields.length === 0 ? new Uint8Array(0) : record([1, 2], [fields.length * 8, 2], ...fields);
}

function centralHeader(entry: Written): Uint8Array {
  const { name, size, offset, crc } = entry;
  const extra = zip64Extra(entry);
  const stored = Math.min(size, LARGEST);
  return join([
    record([0x02014b50, 4], [VERSION, 2], [VERSION, 2], [FLAGS, 2], [0, 2], [0, 4], [crc, 4], [stored, 4], [stored, 4]),
    record([name.length, 2], [extra.length, 2], [0, 2], [0, 2], [0, 2], [0, 4], [Math.min(offset, LARGEST), 4]),
    name,
    extra,
  ]);
}

function endOfDirectory(count: number, begin: number, length: number): Uint8Array {
  const large = count > LARGEST_COUNT || begin + length > LARGEST;
  const far = large
    ? join([
        record([0x06064b50, 4], [44, 8], [VERSION, 2], [VERSION, 2], [0, 4], [0, 4]),
        record([count, 8], [count, 8], [length, 8], [begin, 8]),
        record([0x07064b50, 4], [0, 4], [begin + length, 8], [1, 4]),
      ])
    : new Uint8Array(0);
  const few = large ? LARGEST_COUNT : count;
  const [size, offset] = large ? [LARGEST, LARGEST] : [length, begin];
  return join([far, record([0x06054b50, 4], [0, 2], [0, 2], [few, 2], [few, 2], [size, 4], [offset, 4], [0, 2])]);
}

/** Little-endian numbers of 2, 4 or 8 bytes, one after another. */
function record(...fields: readonly (readonly [value: number, width: number])[]): Uint8Array {
  const bytes = new Uint8Array(fields.reduce((sum, [, width]) => sum + width, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [value, width] of fields) {
    if (width === 8) view.setBigUint64(at, BigInt(value), true);
    else if (width === 4) view.setUint32(at, value, true);
    else view.setUint16(at, value, true);
    at += width;
  }
  return bytes;
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
