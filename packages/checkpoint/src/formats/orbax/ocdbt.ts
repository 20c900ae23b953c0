/** OCDBT, TensorStore's key-value store: a B+tree whose nodes and long values are parts of data files (source: its `kvstore/ocdbt` page). */
import { join } from "../../stores/path";
import { ByteCursor } from "../bytes/cursor";
import { corrupt, unsupported } from "../bytes/errors";
import { insideOf } from "../bytes/safe-path";
import { type ByteSource, memorySource, partOf, readBytes } from "../bytes/source";
import { crc32c } from "./crc32c";
import { unpacked } from "./zstd";

const MANIFEST = 0x0cdb3a2a;
const NODE = 0x0cdb20de;
/** Magic number, length, version, compression, checksum. */
const SHORTEST = 4 + 8 + 2 + 4;
const LONGEST_KEY = 65535;
const MOST_KEYS = 400_000;

export type OpenFile = (path: string) => Promise<ByteSource>;

/** A file of the table of a node: `base` is where the paths of the node's children begin. */
interface DataFile {
  readonly base: string;
  readonly path: string;
}

interface NodePlace {
  readonly file: DataFile;
  readonly begin: number;
  readonly byteLength: number;
  readonly keys: number;
}

/** Every value of the newest version, by its key. @throws OptError CORRUPT, MISSING, REFUSED, UNSUPPORTED */
export async function readOcdbt(folder: string, open: OpenFile): Promise<Map<string, ByteSource>> {
  const where = join(folder, "manifest.ocdbt");
  const values = new Map<string, ByteSource>();
  const files = new Map<string, Promise<ByteSource>>();
  const visited = new Set<string>();
  let budget = MOST_KEYS;
  const part = async ({ path }: DataFile, begin: number, byteLength: number): Promise<ByteSource> => {
    const file = files.get(path) ?? open(insideOf(folder, path, where));
    files.set(path, file);
    return partOf(await file, begin, byteLength);
  };
  const visit = async ({ file, begin, byteLength }: NodePlace, height: number, before: Uint8Array): Promise<void> => {
    const node = await readFramed(await part(file, begin, byteLength), NODE);
    // A node below itself, or twice in the tree, would be read without end.
    if (visited.has(`${file.path}:${begin}`)) throw node.corrupt("a node is there twice");
    visited.add(`${file.path}:${begin}`);
    if (node.uint8() !== height) throw node.corrupt("a node is at another height");
    const table = readFiles(node, file.base);
    const count = readCount(node);
    budget += byteLength - count;
    if (count === 0 || budget < 0) throw node.corrupt(`a node has ${count} entries`);
    const { texts, lengths: shared } = readTexts(node, count, height > 0);
    const keyOf = (i: number, length?: number) => concat(before, texts[i]!.subarray(0, length));
    if (height > 0) {
      const children = readPlaces(node, count, table);
      for (const [i, child] of children.entries()) await visit(child, height - 1, keyOf(i, shared[i]));
      return;
    }
    const lengths = readColumn(node, count);
    const kinds = readColumn(node, count);
    const outside = kinds.filter((kind) => kind === 1).length;
    if (kinds.some((kind) => kind > 1)) throw node.corrupt("a value is of no known kind");
    const owners = readColumn(node, outside).map((id) => fileOf(table, id, node));
    const begins = readColumn(node, outside);
    for (const [i, kind] of kinds.entries()) {
      const key = new TextDecoder().decode(keyOf(i));
      if (values.has(key)) throw node.corrupt(`the key ${JSON.stringify(key)} is there twice`);
      values.set(
        key,
        kind === 1
          ? await part(owners.shift()!, begins.shift()!, lengths[i]!)
          : memorySource(`${where}:${key}`, node.take(lengths[i]!)),
      );
    }
  };
  const root = await readManifest(await open(where));
  if (root !== undefined) await visit(root.place, root.height, new Uint8Array(0));
  return values;
}

/** The root of the newest version; undefined for a store without keys. */
async function readManifest(source: ByteSource): Promise<{ place: NodePlace; height: number } | undefined> {
  const manifest = await readFramed(source, MANIFEST);
  manifest.skip(16);
  if (readCount(manifest) !== 0) {
    throw unsupported(source.path, "its OCDBT manifest is in numbered files", "Save with a single manifest.");
  }
  for (let option = 0; option < 2; option++) readCount(manifest);
  manifest.skip(1);
  const hasLevel = readCount(manifest) !== 0;
  if (hasLevel) manifest.skip(4);
  const files = readFiles(manifest, "");
  const versions = readCount(manifest);
  readColumn(manifest, versions);
  const height = readColumn(manifest, versions, () => manifest.uint8()).at(-1);
  const place = readPlaces(manifest, versions, files).at(-1);
  return place === undefined || height === undefined || place.keys === 0 ? undefined : { place, height };
}

/** What a manifest or node holds, unpacked; its CRC-32C is compared first. @throws OptError CORRUPT, UNSUPPORTED */
async function readFramed(source: ByteSource, magic: number): Promise<ByteCursor> {
  const { path, byteLength } = source;
  if (byteLength < SHORTEST) throw corrupt(path, `OCDBT: ${byteLength} bytes are too few`);
  const bytes = await readBytes(source, 0, byteLength);
  const view = new DataView(bytes.buffer, bytes.byteOffset, byteLength);
  const isWhole = view.getUint32(0) === magic && view.getBigUint64(4, true) === BigInt(byteLength);
  if (!isWhole) throw corrupt(path, "OCDBT: the magic number or the length is wrong");
  if (view.getUint32(byteLength - 4, true) !== crc32c(bytes.subarray(0, -4))) {
    throw corrupt(
      path,
      "OCDBT: the checksum is wrong",
      "The bytes changed since they were written: use an intact copy.",
    );
  }
  const [version, compression] = bytes.subarray(12);
  if (version !== 0 || compression! > 1) {
    throw unsupported(path, `OCDBT: version ${version} or compression ${compression} is not known here`);
  }
  const packed = bytes.subarray(14, -4);
  const body = compression === 0 ? packed : await unpacked(packed, path);
  const cursor = new ByteCursor(memorySource(path, body), 0, body.length);
  await cursor.need(body.length);
  return cursor;
}

/** A number in groups of seven bits, the lowest first. */
function readCount(body: ByteCursor): number {
  let value = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = body.uint8();
    value += (byte & 127) * scale;
    if (!Number.isSafeInteger(value)) throw body.corrupt("a number is too large");
    if (byte < 128) return value;
  }
}

function readColumn(body: ByteCursor, count: number, read = () => readCount(body)): number[] {
  if (count > body.remaining) throw body.corrupt(`${count} entries are named`);
  return Array.from({ length: count }, read);
}

/** Texts that begin as the one before does; `lengths`: a column that is between their lengths and their bytes. */
function readTexts(body: ByteCursor, count: number, hasLengths: boolean): { texts: Uint8Array[]; lengths: number[] } {
  if (count === 0) return { texts: [], lengths: [] };
  const shared = [0, ...readColumn(body, count - 1)];
  const own = readColumn(body, count);
  const lengths = hasLengths ? readColumn(body, count) : [];
  let budget = (1 << 26) + 64 * body.source.byteLength;
  let before = new Uint8Array(0);
  const texts = own.map((length, i) => {
    budget -= shared[i]! + length;
    if (shared[i]! > before.length || shared[i]! + length > LONGEST_KEY || budget < 0) {
      throw body.corrupt("a key is longer than it can be");
    }
    before = concat(before.subarray(0, shared[i]!), body.take(length));
    if (hasLengths && lengths[i]! > before.length) throw body.corrupt("a part of a key is longer than the key");
    return before;
  });
  return { texts, lengths };
}

function readFiles(body: ByteCursor, above: string): DataFile[] {
  const { texts, lengths } = readTexts(body, readCount(body), true);
  const text = (bytes: Uint8Array): string => above + new TextDecoder().decode(bytes);
  return texts.map((path, i) => ({ base: text(path.subarray(0, lengths[i]!)), path: text(path) }));
}

/** Where nodes are, with the number of keys below each; two more counts (of bytes) serve writers only. */
function readPlaces(body: ByteCursor, count: number, files: readonly DataFile[]): NodePlace[] {
  const ids = readColumn(body, count);
  const [begins, lengths, keys] = [0, 1, 2].map(() => readColumn(body, count, () => readLarge(body)));
  for (let column = 0; column < 2; column++) readColumn(body, count);
  return ids.map((id, i) => {
    const place = { begin: begins![i]!, byteLength: lengths![i]!, keys: keys![i]! };
    // A version without keys has no root, and so no file.
    return { ...place, file: place.keys === 0 ? { base: "", path: "" } : fileOf(files, id, body) };
  });
}

/** A count that may be 2^64 - 1, where there is nothing. */
function readLarge(body: ByteCursor): number {
  let value = 0;
  for (let group = 0; group < 10; group++) {
    const byte = body.uint8();
    value += (byte & 127) * 2 ** (7 * group);
    if (byte < 128) return value;
  }
  throw body.corrupt("a number does not end");
}

function fileOf(files: readonly DataFile[], id: number, body: ByteCursor): DataFile {
  const file = files[id];
  if (file === undefined) throw body.corrupt(`file ${id} of ${files.length} is named`);
  return file;
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
