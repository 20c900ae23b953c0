/** The safetensors container: 8 bytes of little-endian header length, a JSON header, then the tensors end to end. */
import { check, OptError } from "@opt/core";
import { elementCount } from "../layout/box";
import { isCount } from "../layout/counts";
import { bytesPerElement, isStoredDType, type StoredDType } from "./dtype";
import { piecesOfObject, problemOfJson } from "./json/json-text";
import { MAX_HEADER_BYTES } from "./safetensors-writer";
import type { RandomAccess, ReadLimits } from "./source";

export interface SafetensorsEntry {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  /** Where the bytes lie in the file, counted from its start. */
  readonly begin: number;
  readonly end: number;
}

export interface SafetensorsHeader {
  /** In the order of their bytes. */
  readonly entries: readonly SafetensorsEntry[];
  /** The element types that are not known here, by tensor: their bytes are stepped over. */
  readonly unreadable: ReadonlyMap<string, string>;
  readonly metadata: Readonly<Record<string, string>>;
  /** Length of the size field and the header together: where the data begin. */
  readonly byteLength: number;
}

const METADATA_NAME = "__metadata__";

/** The header, its members, and lists in them. */
const DEEPEST = 3;

function corrupt(where: string, problem: string): OptError {
  return new OptError("CORRUPT", where, `header: ${problem}`, "The file is damaged, or no safetensors file.");
}

function truncated(where: string, wanted: number, got: number, least = ""): OptError {
  const problem = `${least}${wanted - got} bytes are missing: a file of ${least}${wanted} bytes was announced, got ${got}.`;
  return new OptError("CORRUPT", where, problem, "It was cut off: copy or download it again.");
}

/** Reads and checks the header of an open file. @throws OptError CORRUPT, UNSUPPORTED, REFUSED for one that is too long */
export async function readSafetensorsHeader(file: RandomAccess, limits: ReadLimits = {}): Promise<SafetensorsHeader> {
  if (file.byteLength < 8) throw corrupt(file.path, `a file must have at least 8 bytes, got ${file.byteLength}.`);
  const prefix = new Uint8Array(8);
  await file.read(prefix, 0);
  const length = headerLength(prefix, file.byteLength, file.path);
  const { maxHeaderBytes: limit = MAX_HEADER_BYTES } = limits;
  check(
    length <= limit,
    "REFUSED",
    file.path,
    () => `a header must be at most ${limit} bytes, got ${length}.`,
    "To trust the file, raise maxHeaderBytes.",
  );
  const header = new Uint8Array(length);
  await file.read(header, 8);
  return parseSafetensorsHeader(header, file.byteLength, file.path);
}

function headerLength(prefix: Uint8Array, fileLength: number, where: string): number {
  const length = new DataView(prefix.buffer, prefix.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(MAX_HEADER_BYTES))
    throw corrupt(where, `length must be at most ${MAX_HEADER_BYTES}, got ${length}.`);
  if (length > BigInt(fileLength - 8)) throw truncated(where, 8 + Number(length), fileLength, "at least ");
  return Number(length);
}

/** Checks a header's JSON against the length of its file: dtypes, shapes, holes, overlaps, duplicates, overflow. */
export function parseSafetensorsHeader(header: Uint8Array, fileLength: number, where: string): SafetensorsHeader {
  const byteLength = 8 + header.length;
  const entries: (Omit<SafetensorsEntry, "dtype"> & { readonly dtype: string })[] = [];
  let metadata: Record<string, string> = {};
  for (const [name, value] of membersOf(header, where)) {
    if (name === METADATA_NAME) metadata = parseMetadata(value, where);
    else entries.push(parseEntry(name, value, byteLength, where));
  }
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let position = byteLength;
  for (const entry of entries) {
    if (entry.begin !== position) {
      const what = entry.begin < position ? "overlaps the tensor before it" : "leaves a hole before it";
      throw corrupt(
        where,
        `tensor ${JSON.stringify(entry.name)} at byte ${entry.begin} ${what}, which ends at ${position}.`,
      );
    }
    position = entry.end;
  }
  if (position > fileLength) throw truncated(where, position, fileLength);
  if (position < fileLength) throw corrupt(where, `tensors end at byte ${position}, the file at ${fileLength}.`);
  const known = entries.filter((entry): entry is SafetensorsEntry => isStoredDType(entry.dtype));
  const unreadable = new Map(
    entries.filter(({ dtype }) => !isStoredDType(dtype)).map(({ name, dtype }) => [name, dtype]),
  );
  return { entries: known, unreadable, metadata, byteLength };
}

/** What a tensor says of itself is short; metadata may be most of a header. */
const LONGEST = 1 << 20;
const MOST_METADATA = 100_000;
const METADATA = new TextEncoder().encode(`"${METADATA_NAME}"`);

/** The members, piece by piece: what is parsed of a piece is dropped before the next. */
function* membersOf(header: Uint8Array, where: string): Generator<[name: string, value: unknown]> {
  const names = new Set<string>();
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const fail = (problem: string) => corrupt(where, `must be JSON in UTF-8, got ${problem}.`);
  const isMetadata = (begin: number) => METADATA.every((byte, i) => header[begin + i] === byte);
  const most = (begin: number) => (isMetadata(begin) ? MAX_HEADER_BYTES : LONGEST);
  for (const piece of piecesOfObject(header, most, fail)) {
    let parsed: Record<string, unknown>;
    try {
      const text = `{${decoder.decode(piece)}}`;
      const problem = problemOfJson(text, DEEPEST, MOST_METADATA);
      if (problem !== undefined) throw new Error(problem);
      parsed = JSON.parse(text);
    } catch (error) {
      throw fail(error instanceof Error ? error.message : String(error));
    }
    for (const [name, value] of Object.entries(parsed)) {
      if (names.has(name)) throw fail(`key ${JSON.stringify(name)} occurs twice`);
      names.add(name);
      yield [name, value];
    }
  }
}

function parseMetadata(value: unknown, where: string): Record<string, string> {
  if (typeof value !== "object" || value === null || Object.values(value).some((text) => typeof text !== "string")) {
    throw corrupt(where, "__metadata__ must map names to strings.");
  }
  return value as Record<string, string>;
}

function parseEntry(name: string, value: unknown, dataOffset: number, where: string) {
  const tensor = JSON.stringify(name);
  if (typeof value !== "object" || value === null) throw corrupt(where, `tensor ${tensor} must be an object.`);
  const { dtype, shape, data_offsets: range } = value as Record<string, unknown>;
  if (typeof dtype !== "string") throw corrupt(where, `tensor ${tensor} has no dtype.`);
  if (!Array.isArray(shape) || !shape.every(isCount)) throw corrupt(where, `tensor ${tensor} has no valid shape.`);
  const [begin, end] = Array.isArray(range) && range.length === 2 ? (range as unknown[]) : [];
  if (!isCount(begin) || !isCount(end) || begin > end)
    throw corrupt(where, `tensor ${tensor} has no valid data_offsets.`);
  const count = elementCount(shape);
  if (count === undefined || (isStoredDType(dtype) && count * bytesPerElement(dtype) !== end - begin)) {
    throw corrupt(where, `tensor ${tensor}, ${dtype} [${shape}], does not fill its ${end - begin} bytes exactly.`);
  }
  return { name, dtype, shape, begin: dataOffset + begin, end: dataOffset + end };
}
