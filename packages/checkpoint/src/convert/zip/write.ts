/** Zip archives of stored members as PyTorch writes them: contents aligned to 64 bytes, checksums behind them, zip64 where it must be. */
import { crc32 } from "../../format/crc32";
import {
  CENTRAL,
  CRC_BEHIND,
  DESCRIPTOR,
  END,
  LOCAL,
  littleEndian,
  SEE_WIDE,
  SEE_WIDE_COUNT,
  UTF8,
  WIDE_DESCRIPTOR,
  WIDE_END,
  WIDE_FIELD,
  WIDE_LOCATOR,
} from "../../formats/zip/records";
import { known, type Part } from "../files/write-sequence";

export interface Member {
  readonly name: string;
  /** The bytes themselves, or only their number where they are streamed. */
  readonly content: Uint8Array | number;
}

const UTF8_TEXT = new TextEncoder();
const ALIGNMENT = 64;
const VERSION = { madeBy: 45, needs: 45 };
const FLAGS = CRC_BEHIND | UTF8;

interface WrittenEntry {
  readonly name: Uint8Array;
  readonly size: number;
  readonly offset: number;
  crc: number;
}

/** By member, where the last archive had it: many archives have the same members. */
const LAST = new WeakMap<Member, Readonly<WrittenEntry> & { readonly header: Uint8Array }>();

function headOf(member: Member, offset: number) {
  const last = LAST.get(member);
  if (last?.offset === offset) return last;
  const { name, content } = member;
  const [size, crc] = typeof content === "number" ? [content, 0] : [content.byteLength, crc32(content)];
  const entry = { name: UTF8_TEXT.encode(name), size, offset, crc };
  const head = { ...entry, header: localHeader(entry) };
  LAST.set(member, head);
  return head;
}

/** The parts of an archive whose first byte is the first part's. Streamed contents are expected in the order of the members. */
export function zipParts(members: readonly Member[]): Part[] {
  const parts: Part[] = [];
  const written: WrittenEntry[] = [];
  let position = 0;
  const add = (part: Part): void => {
    parts.push(part);
    position += part.byteLength + part.content;
  };
  for (const member of members) {
    const { content } = member;
    const { header, ...entry } = headOf(member, position);
    const { size } = entry;
    written.push(entry);
    if (typeof content === "number") {
      const done = (crc: number): void => {
        entry.crc = crc;
      };
      add(known(header, size, done));
    } else {
      add(known(header));
      add(known(content));
    }
    add({ byteLength: descriptorOf(size).byteLength, head: () => descriptor(entry), content: 0 });
  }
  const begin = position;
  const lengths = written.map((entry) => CENTRAL.byteLength + entry.name.length + centralExtra(entry).length);
  const length = lengths.reduce((sum, one) => sum + one, 0);
  const end = endOfDirectory(written.length, begin, length);
  add({ byteLength: length, head: () => join(written.map(centralHeader)), content: 0 });
  add(known(end));
  return parts;
}

/** The largest number of 32 bits itself says that the number is elsewhere. */
const isWide = (size: number): boolean => size >= SEE_WIDE;

function localHeader({ name, size, offset }: WrittenEntry): Uint8Array {
  const sizes = isWide(size) ? wideField(size, size) : new Uint8Array(0);
  // The padding is an extra field of its own, as torch's "FB" is.
  const unpadded = offset + LOCAL.byteLength + name.length + sizes.length + 4;
  const padding = (ALIGNMENT - (unpadded % ALIGNMENT)) % ALIGNMENT;
  const extra = join([sizes, littleEndian([0x4246, 2], [padding, 2]), new Uint8Array(padding)]);
  const stored = Math.min(size, SEE_WIDE);
  const lengths = { packed: stored, size: stored, name: name.length, extra: extra.length };
  return join([LOCAL.write({ ...VERSION, flags: FLAGS, ...lengths }), name, extra]);
}

const descriptorOf = (size: number) => (isWide(size) ? WIDE_DESCRIPTOR : DESCRIPTOR);

function descriptor({ size, crc }: WrittenEntry): Uint8Array {
  return descriptorOf(size).write({ crc32: crc, packed: size, size });
}

export function wideField(...values: readonly number[]): Uint8Array {
  if (values.length === 0) return new Uint8Array(0);
  return littleEndian([WIDE_FIELD, 2], [values.length * 8, 2], ...values.map((value) => [value, 8] as const));
}

function centralExtra({ size, offset }: WrittenEntry): Uint8Array {
  return wideField(...(isWide(size) ? [size, size] : []), ...(isWide(offset) ? [offset] : []));
}

function centralHeader(entry: WrittenEntry): Uint8Array {
  const { name, size, offset, crc } = entry;
  const extra = centralExtra(entry);
  const stored = Math.min(size, SEE_WIDE);
  const lengths = { packed: stored, size: stored, name: name.length, extra: extra.length };
  const begin = Math.min(offset, SEE_WIDE);
  return join([CENTRAL.write({ ...VERSION, flags: FLAGS, crc32: crc, ...lengths, begin }), name, extra]);
}

/** @param widest the largest place that the short record holds */
export function endOfDirectory(count: number, begin: number, length: number, widest = SEE_WIDE - 1): Uint8Array {
  const shown = Math.min(count, SEE_WIDE_COUNT);
  const places = { size: Math.min(length, SEE_WIDE), begin: Math.min(begin, SEE_WIDE) };
  const short = END.write({ countHere: shown, count: shown, ...places });
  if (count < SEE_WIDE_COUNT && begin <= widest && length <= widest) return short;
  const rest = WIDE_END.byteLength - 12;
  return join([
    WIDE_END.write({ rest, ...VERSION, countHere: count, count, size: length, begin }),
    WIDE_LOCATOR.write({ begin: begin + length, disks: 1 }),
    short,
  ]);
}

export function join(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
