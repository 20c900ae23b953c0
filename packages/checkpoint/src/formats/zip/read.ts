/** Zip archives as checkpoints use them: members, stored or deflated, found by the central directory and read where they lie. */
import { check, OptError } from "@opt/core";
import { ByteCursor } from "../bytes/cursor";
import { corrupt, unsupported } from "../bytes/errors";
import { latin1 } from "../bytes/latin1";
import { type ByteSource, partOf, readBytes, verified } from "../bytes/source";
import { InflatedMembers, inflatedHead } from "./inflate";
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

/** Read at once where members begin, for as long as they are short. */
const READ_AHEAD = 64 * 1024;

export interface ZipMember extends ByteSource {
  /** The first bytes, as many as there are, before a checksum vouches for them: the rest is not read. */
  head(length: number): Promise<Uint8Array>;
}

/** The number of members that a file of so many bytes may have: each is told twice, with its name. */
const mostMembers = (byteLength: number): number => 100_000 + Math.floor(byteLength / 256);

interface Entry {
  readonly name: string;
  readonly isEncrypted: boolean;
  readonly method: number;
  readonly crc32: number;
  readonly byteLength: number;
  /** As it lies in the archive. */
  readonly packedLength: number;
  readonly begin: number;
}

const STORED = 0;
const DEFLATED = 8;

/**
 * The members of an archive by name; each is checked against its CRC-32 when it is first read.
 *
 * @throws OptError CORRUPT, REFUSED, UNSUPPORTED
 */
export async function openZip(source: ByteSource): Promise<Map<string, ZipMember>> {
  const entries = await readDirectory(source, mostMembers(source.byteLength));
  entries.sort((a, b) => a.begin - b.begin);
  const members = new Map<string, ZipMember>();
  const cursor = new ByteCursor(source, 0, READ_AHEAD);
  const inflated = new InflatedMembers();
  for (const entry of entries) {
    const { name, byteLength, packedLength, begin } = entry;
    const path = `${source.path}:${name}`;
    if (members.has(name)) throw damaged(path, "two members have this name");
    if (entry.isEncrypted || ![STORED, DEFLATED].includes(entry.method)) throw packed(path, entry);
    if (begin < cursor.position) throw damaged(path, "the member overlaps the one before it");
    cursor.skip(begin - cursor.position);
    const isLong = packedLength > READ_AHEAD && !cursor.has(LOCAL.byteLength);
    if (!isLong) await cursor.need(LOCAL.byteLength);
    const header = viewOf(isLong ? await readBytes(source, begin, LOCAL.byteLength) : cursor.take(LOCAL.byteLength));
    if (isLong) cursor.skip(LOCAL.byteLength);
    if (!LOCAL.isAt(header)) throw damaged(path, "no header stands where the directory says");
    const { name: nameLength, extra } = LOCAL.read(header);
    cursor.skip(nameLength + extra);
    const stored = partOf(source, cursor.position, packedLength, path);
    const bytes = entry.method === STORED ? stored : inflated.member(stored, byteLength);
    const head = (length: number) =>
      entry.method === STORED
        ? readBytes(stored, 0, Math.min(length, byteLength))
        : inflatedHead(stored, byteLength, length);
    members.set(name, { ...verified(bytes, entry.crc32), head });
    cursor.skip(packedLength);
  }
  return members;
}

/** The names of an archive's members, in the directory's order; undefined where the directory cannot be read. */
export async function memberNames(source: ByteSource): Promise<readonly string[] | undefined> {
  try {
    const entries = await readDirectory(source, mostMembers(source.byteLength));
    return entries.map(({ name }) => name);
  } catch {
    return undefined;
  }
}

async function findDirectory(source: ByteSource): Promise<{ count: number; begin: number; end: number }> {
  const { path, byteLength } = source;
  const viewAt = async (position: number, length: number) => viewOf(await readBytes(source, position, length));
  // The end's own record may be followed by a comment of 64 KiB.
  const from = Math.max(0, byteLength - END.byteLength - 0xffff);
  if (byteLength < END.byteLength) throw damaged(path, "it is too short for a zip archive");
  const tail = await viewAt(from, byteLength - from);
  let at = tail.byteLength - END.byteLength;
  const isEnd = () => END.isAt(tail, at) && END.read(tail, at).comment === tail.byteLength - at - END.byteLength;
  while (at >= 0 && !isEnd()) at--;
  if (at < 0) throw damaged(path, "it has no central directory: it is truncated, or no zip archive");
  let { count, size, begin, disk } = END.read(tail, at);
  if (count === SEE_WIDE_COUNT || size === SEE_WIDE || begin === SEE_WIDE) {
    const locator = from + at - WIDE_LOCATOR.byteLength;
    if (locator >= 0 && WIDE_LOCATOR.isAt(await viewAt(locator, 4))) {
      const place = WIDE_LOCATOR.read(await viewAt(locator, WIDE_LOCATOR.byteLength)).begin;
      const end = await viewAt(exact(place, path), WIDE_END.byteLength);
      if (!WIDE_END.isAt(end)) throw damaged(path, "the end of its directory is not where it says");
      ({ count, size, begin } = WIDE_END.read(end));
      for (const value of [count, size, begin]) exact(value, path);
    }
  } else if (disk !== 0) throw damaged(path, "it is one of several disks");
  if (begin + size > from + at) throw damaged(path, "its directory leaves the file");
  return { count, begin, end: begin + size };
}

async function readDirectory(source: ByteSource, most: number): Promise<Entry[]> {
  const { path } = source;
  const { count, begin, end } = await findDirectory(source);
  check(count <= most, "REFUSED", path, () => `it has more than ${most} members.`, "Do not trust it.");
  const cursor = new ByteCursor(partOf(source, 0, end), begin);
  const entries: Entry[] = [];
  while (entries.length < count) {
    await cursor.need(CENTRAL.byteLength);
    const fixed = viewOf(cursor.take(CENTRAL.byteLength));
    if (!CENTRAL.isAt(fixed)) throw cursor.corrupt("the directory is damaged");
    const { name, extra, comment, ...fields } = CENTRAL.read(fixed);
    await cursor.need(name + extra);
    entries.push(entryOf(fields, cursor.take(name), cursor.take(extra), path));
    cursor.skip(comment);
  }
  return entries;
}

type Fields = Omit<ReturnType<typeof CENTRAL.read>, "name" | "extra" | "comment">;

function entryOf({ flags, method, crc32, ...narrow }: Fields, called: Uint8Array, extra: Uint8Array, path: string) {
  const name = flags & UTF8 ? new TextDecoder().decode(called) : latin1(called);
  if (/^\/|^[A-Za-z]:|\\/.test(name) || name.split("/").includes("..")) {
    const problem = `a member leaves the archive: ${JSON.stringify(name)}.`;
    throw new OptError("REFUSED", path, problem, "Do not unpack this file.");
  }
  // What does not fit into 32 bits stands in an extra field, in this order, as far as it is needed.
  const view = viewOf(extra);
  let wide = wideField(view, path);
  const widened = (value: number): number => {
    if (value !== SEE_WIDE || wide === undefined) return value;
    wide += 8;
    return exact(wide <= view.byteLength ? wideAt(view, wide - 8) : Number.NaN, path);
  };
  const byteLength = widened(narrow.size);
  const packedLength = widened(narrow.packed);
  const begin = widened(narrow.begin);
  if (method === STORED && packedLength !== byteLength) throw damaged(`${path}:${name}`, "its two lengths differ");
  return { name, isEncrypted: (flags & ENCRYPTED) !== 0, method, crc32, byteLength, packedLength, begin };
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array) => new DataView(buffer, byteOffset, byteLength);

/** Where the values of the extra field for long archives begin. */
function wideField(view: DataView<ArrayBufferLike>, path: string): number | undefined {
  for (let at = 0; at + 4 <= view.byteLength; ) {
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
  return unsupported(path, `members must be stored or deflated, this one is ${how}`, "Zip it again with `zip -0`.");
}
