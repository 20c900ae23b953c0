/** Zip archives as checkpoints use them: stored members, found by the central directory and read where they lie. */
import { check, OptError } from "@opt/core";
import { type ImportOptions, mostTensors } from "../../format/source";
import { type ByteSource, checkRange, partOf, readBytes, verified } from "./byte-source";

/** The directory's entries follow each other: so much is read at once. */
const WINDOW = 64 * 1024;

/** Members of a PyTorch file that are no storages. */
const OTHER_MEMBERS = 16;
const TRUST = "If you trust it, raise maxTensors (--max-tensors).";

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const END_64 = 0x06064b50;
const LOCATOR_64 = 0x07064b50;

interface Entry {
  readonly name: string;
  readonly isEncrypted: boolean;
  readonly method: number;
  readonly crc32: number;
  readonly byteLength: number;
  /** Where its local header begins. */
  readonly begin: number;
}

/** The members of an archive by name; each is checked against its CRC-32 when it is first read. Throws CORRUPT, REFUSED, UNSUPPORTED. */
export async function openZip(source: ByteSource, options: ImportOptions = {}): Promise<Map<string, ByteSource>> {
  const window = new Window(source);
  const entries = await readDirectory(window, mostTensors(source.byteLength, options) + OTHER_MEMBERS);
  entries.sort((a, b) => a.begin - b.begin);
  const members = new Map<string, ByteSource>();
  let end = 0;
  for (const entry of entries) {
    const { name, byteLength, begin } = entry;
    const path = `${source.path}:${name}`;
    if (members.has(name)) throw corrupt(path, "two members have this name");
    if (entry.isEncrypted || entry.method !== 0) throw packed(path, entry);
    if (begin < end) throw corrupt(path, "the member overlaps the one before it");
    const header = await window.view(begin, 30);
    if (header.getUint32(0, true) !== LOCAL) throw corrupt(path, "no header stands where the directory says");
    const data = begin + 30 + header.getUint16(26, true) + header.getUint16(28, true);
    end = data + byteLength;
    members.set(name, verified(partOf(source, data, byteLength, path), entry.crc32));
  }
  return members;
}

/** Where the directory lies, and how many entries it has. */
async function findDirectory(window: Window): Promise<{ count: number; begin: number; end: number }> {
  const { path, byteLength } = window.source;
  // The end's own record may be followed by a comment of 64 KiB.
  const from = Math.max(0, byteLength - 22 - 0xffff);
  if (byteLength < 22) throw corrupt(path, "it is too short for a zip archive");
  const tail = await window.view(from, byteLength - from);
  let at = tail.byteLength - 22;
  const isEnd = () => tail.getUint32(at, true) === END && tail.getUint16(at + 20, true) === tail.byteLength - at - 22;
  while (at >= 0 && !isEnd()) at--;
  if (at < 0) throw corrupt(path, "it has no central directory: it is truncated, or no zip archive");
  let [count, size, begin] = [
    tail.getUint16(at + 10, true),
    tail.getUint32(at + 12, true),
    tail.getUint32(at + 16, true),
  ];
  const disks = tail.getUint16(at + 4, true);
  if (count === 0xffff || size === 0xffffffff || begin === 0xffffffff) {
    const locator = from + at - 20;
    if (locator >= 0 && (await window.view(locator, 4)).getUint32(0, true) === LOCATOR_64) {
      const place = wide(await window.view(locator, 20), 8, path);
      const end = await window.view(place, 56);
      if (end.getUint32(0, true) !== END_64) throw corrupt(path, "the end of its directory is not where it says");
      [count, size, begin] = [wide(end, 32, path), wide(end, 40, path), wide(end, 48, path)];
    }
  } else if (disks !== 0) throw corrupt(path, "it is one of several disks");
  if (begin + size > from + at) throw corrupt(path, "its directory leaves the file");
  return { count, begin, end: begin + size };
}

async function readDirectory(window: Window, most: number): Promise<Entry[]> {
  const { path } = window.source;
  const { count, begin, end } = await findDirectory(window);
  check(count <= most, "REFUSED", path, () => `it has more than ${most} members.`, TRUST);
  const entries: Entry[] = [];
  let at = begin;
  while (entries.length < count) {
    if (at + 46 > end) throw corrupt(path, `its directory has ${entries.length} of ${count} members`);
    const fixed = await window.view(at, 46);
    if (fixed.getUint32(0, true) !== CENTRAL) throw corrupt(path, `its directory is damaged at byte ${at}`);
    const [nameLength, extraLength] = [fixed.getUint16(28, true), fixed.getUint16(30, true)];
    const next = at + 46 + nameLength + extraLength + fixed.getUint16(32, true);
    if (next > end) throw corrupt(path, `its directory is damaged at byte ${at}`);
    const whole = await window.view(at, 46 + nameLength + extraLength);
    entries.push(entryOf(whole, nameLength, path));
    at = next;
  }
  return entries;
}

function entryOf(view: DataView<ArrayBufferLike>, nameLength: number, path: string): Entry {
  const flags = view.getUint16(8, true);
  const bytes = new Uint8Array(view.buffer, view.byteOffset + 46, nameLength);
  const name = new TextDecoder(flags & 0x800 ? "utf-8" : "latin1").decode(bytes);
  if (/^\/|^[A-Za-z]:|\\/.test(name) || name.split("/").includes("..")) {
    throw new OptError(
      "REFUSED",
      path,
      `a member leaves the archive: ${JSON.stringify(name)}.`,
      "Do not unpack this file.",
    );
  }
  const method = view.getUint16(10, true);
  let [packedLength, byteLength, begin] = [
    view.getUint32(20, true),
    view.getUint32(24, true),
    view.getUint32(42, true),
  ];
  // What does not fit into 32 bits stands in the extra field 1, in this order, as far as it is needed.
  let wideAt = wideField(view, 46 + nameLength, path);
  const widened = (narrow: number): number => {
    if (narrow !== 0xffffffff || wideAt === undefined) return narrow;
    const value = wide(view, wideAt, path);
    wideAt += 8;
    return value;
  };
  byteLength = widened(byteLength);
  packedLength = widened(packedLength);
  begin = widened(begin);
  if (method === 0 && packedLength !== byteLength) throw corrupt(`${path}:${name}`, "its two lengths differ");
  return { name, isEncrypted: (flags & 1) !== 0, method, crc32: view.getUint32(16, true), byteLength, begin };
}

/** Where the values of the extra field for long archives begin. */
function wideField(view: DataView<ArrayBufferLike>, begin: number, path: string): number | undefined {
  for (let at = begin; at + 4 <= view.byteLength; ) {
    const [id, length] = [view.getUint16(at, true), view.getUint16(at + 2, true)];
    if (at + 4 + length > view.byteLength) throw corrupt(path, "an extra field leaves its member");
    if (id === 1) return at + 4;
    at += 4 + length;
  }
  return undefined;
}

/** A whole number of 64 bits. */
function wide(view: DataView<ArrayBufferLike>, at: number, path: string): number {
  const value = at + 8 <= view.byteLength ? Number(view.getBigUint64(at, true)) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw corrupt(path, "a length of its directory is no length");
  return value;
}

function corrupt(path: string, problem: string): OptError {
  return new OptError("CORRUPT", path, `${problem}.`, "The archive is damaged: use an intact copy.");
}

function packed(path: string, { isEncrypted, method }: Entry): OptError {
  const how = isEncrypted ? "encrypted" : `compressed by method ${method}`;
  return new OptError(
    "UNSUPPORTED",
    path,
    `members must be stored, this one is ${how}.`,
    "Zip it again with `zip -0`.",
  );
}

/** A source with a window, so that small reads do not each go to the disk. */
class Window {
  readonly source: ByteSource;
  #bytes: Uint8Array = new Uint8Array(0);
  #begin = 0;

  constructor(source: ByteSource) {
    this.source = source;
  }

  /** Throws CORRUPT for what leaves the source. */
  async view(position: number, length: number): Promise<DataView<ArrayBufferLike>> {
    checkRange(this.source, position, length);
    if (position < this.#begin || position + length > this.#begin + this.#bytes.byteLength) {
      const available = Math.min(Math.max(length, WINDOW), this.source.byteLength - position);
      this.#bytes = await readBytes(this.source, position, available);
      this.#begin = position;
    }
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + position - this.#begin, length);
  }
}
