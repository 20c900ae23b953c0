/** Zip archives as checkpoints use them: stored members, found by the central directory and read where they lie. */
import { check, OptError } from "@opt/core";
import { type ImportOptions, mostTensors } from "../../format/source";
import { corrupt, unsupported } from "../bytes/errors";
import { latin1 } from "../bytes/latin1";
import { type ByteSource, checkRange, partOf, readBytes, verified } from "../bytes/source";
import {
  CENTRAL,
  ENCRYPTED,
  END,
  LOCAL,
  SEE_WIDE,
  SEE_WIDE_COUNT,
  UTF8,
  WIDE_END,
  WIDE_FIELD,
  WIDE_LOCATOR,
  wideAt,
} from "./records";

/** The directory's entries follow each other: so much is read at once. */
const WINDOW = 64 * 1024;

/** Members of a PyTorch file that are no storages. */
const OTHER_MEMBERS = 16;
const TRUST = "If you trust it, raise maxTensors (--max-tensors).";

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
    if (members.has(name)) throw damaged(path, "two members have this name");
    if (entry.isEncrypted || entry.method !== 0) throw packed(path, entry);
    if (begin < end) throw damaged(path, "the member overlaps the one before it");
    const header = await window.view(begin, LOCAL.byteLength);
    if (!LOCAL.isAt(header)) throw damaged(path, "no header stands where the directory says");
    const { name: nameLength, extra } = LOCAL.read(header);
    const data = begin + LOCAL.byteLength + nameLength + extra;
    end = data + byteLength;
    members.set(name, verified(partOf(source, data, byteLength, path), entry.crc32));
  }
  return members;
}

/** Where the directory lies, and how many entries it has. */
async function findDirectory(window: Window): Promise<{ count: number; begin: number; end: number }> {
  const { path, byteLength } = window.source;
  // The end's own record may be followed by a comment of 64 KiB.
  const from = Math.max(0, byteLength - END.byteLength - 0xffff);
  if (byteLength < END.byteLength) throw damaged(path, "it is too short for a zip archive");
  const tail = await window.view(from, byteLength - from);
  let at = tail.byteLength - END.byteLength;
  const isEnd = () => END.isAt(tail, at) && END.read(tail, at).comment === tail.byteLength - at - END.byteLength;
  while (at >= 0 && !isEnd()) at--;
  if (at < 0) throw damaged(path, "it has no central directory: it is truncated, or no zip archive");
  let { count, size, begin, disk } = END.read(tail, at);
  if (count === SEE_WIDE_COUNT || size === SEE_WIDE || begin === SEE_WIDE) {
    const locator = from + at - WIDE_LOCATOR.byteLength;
    if (locator >= 0 && WIDE_LOCATOR.isAt(await window.view(locator, 4))) {
      const place = WIDE_LOCATOR.read(await window.view(locator, WIDE_LOCATOR.byteLength)).begin;
      const end = await window.view(exact(place, path), WIDE_END.byteLength);
      if (!WIDE_END.isAt(end)) throw damaged(path, "the end of its directory is not where it says");
      ({ count, size, begin } = WIDE_END.read(end));
      for (const value of [count, size, begin]) exact(value, path);
    }
  } else if (disk !== 0) throw damaged(path, "it is one of several disks");
  if (begin + size > from + at) throw damaged(path, "its directory leaves the file");
  return { count, begin, end: begin + size };
}

async function readDirectory(window: Window, most: number): Promise<Entry[]> {
  const { path } = window.source;
  const { count, begin, end } = await findDirectory(window);
  check(count <= most, "REFUSED", path, () => `it has more than ${most} members.`, TRUST);
  const entries: Entry[] = [];
  let at = begin;
  while (entries.length < count) {
    if (at + CENTRAL.byteLength > end) throw damaged(path, `its directory has ${entries.length} of ${count} members`);
    const fixed = await window.view(at, CENTRAL.byteLength);
    if (!CENTRAL.isAt(fixed)) throw damaged(path, `its directory is damaged at byte ${at}`);
    const { name: nameLength, extra, comment } = CENTRAL.read(fixed);
    const next = at + CENTRAL.byteLength + nameLength + extra + comment;
    if (next > end) throw damaged(path, `its directory is damaged at byte ${at}`);
    const whole = await window.view(at, CENTRAL.byteLength + nameLength + extra);
    entries.push(entryOf(whole, path));
    at = next;
  }
  return entries;
}

function entryOf(view: DataView<ArrayBufferLike>, path: string): Entry {
  const { flags, method, crc32, name: nameLength, ...narrow } = CENTRAL.read(view);
  const bytes = new Uint8Array(view.buffer, view.byteOffset + CENTRAL.byteLength, nameLength);
  const name = flags & UTF8 ? new TextDecoder().decode(bytes) : latin1(bytes);
  if (/^\/|^[A-Za-z]:|\\/.test(name) || name.split("/").includes("..")) {
    const problem = `a member leaves the archive: ${JSON.stringify(name)}.`;
    throw new OptError("REFUSED", path, problem, "Do not unpack this file.");
  }
  // What does not fit into 32 bits stands in an extra field, in this order, as far as it is needed.
  let wide = wideField(view, CENTRAL.byteLength + nameLength, path);
  const widened = (value: number): number => {
    if (value !== SEE_WIDE || wide === undefined) return value;
    wide += 8;
    return exact(wide <= view.byteLength ? wideAt(view, wide - 8) : Number.NaN, path);
  };
  const byteLength = widened(narrow.size);
  const packedLength = widened(narrow.packed);
  const begin = widened(narrow.begin);
  if (method === 0 && packedLength !== byteLength) throw damaged(`${path}:${name}`, "its two lengths differ");
  return { name, isEncrypted: (flags & ENCRYPTED) !== 0, method, crc32, byteLength, begin };
}

/** Where the values of the extra field for long archives begin. */
function wideField(view: DataView<ArrayBufferLike>, begin: number, path: string): number | undefined {
  for (let at = begin; at + 4 <= view.byteLength; ) {
    const [id, length] = [view.getUint16(at, true), view.getUint16(at + 2, true)];
    if (at + 4 + length > view.byteLength) throw damaged(path, "an extra field leaves its member");
    if (id === WIDE_FIELD) return at + 4;
    at += 4 + length;
  }
  return undefined;
}

function exact(value: number, path: string): number {
  if (!Number.isSafeInteger(value)) throw damaged(path, "a length of its directory is no length");
  return value;
}

const damaged = (path: string, problem: string) =>
  corrupt(path, problem, "The archive is damaged: use an intact copy.");

function packed(path: string, { isEncrypted, method }: Entry): OptError {
  const how = isEncrypted ? "encrypted" : `compressed by method ${method}`;
  return unsupported(path, `members must be stored, this one is ${how}`, "Zip it again with `zip -0`.");
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
