/** GGUF files of llama.cpp, versions 2 and 3. Quantized tensors are float32 once they are read. Source: ggml's gguf.md. */
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import { type Json, mostTensors, type Skipped, type SourceTensor } from "../../format/source";
import { elementCount } from "../../layout/box";
import { isCount } from "../../layout/counts";
import { basename } from "../../stores/path";
import { ByteCursor } from "../bytes/cursor";
import { quoted, unsupported } from "../bytes/errors";
import { wholeTensor } from "../bytes/foreign-tensor";
import { formatReader } from "../bytes/reader";
import { type ByteSource, checkRange, partOf, readBytes } from "../bytes/source";
import { BLOCK_TYPES, type BlockType } from "./quants";

const PLAIN_TYPES: Readonly<Record<number, StoredDType>> = {
  ...{ 0: "F32", 1: "F16", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 30: "BF16" },
};
const ALIGNMENT = "general.alignment";
const LONGEST_NAME = 65_535;
const LONGEST_TEXT = 16 * 1024 * 1024;
const MOST_DIMENSIONS = 8;
/** Longer lists are skipped, and those of tokenizers (their words, scores and merges) of any length. */
const LONGEST_LIST = 64;

export const ggufReader = formatReader("GGUF", async ({ path, file }) => {
  const source = await file();
  const cursor = new ByteCursor(source, 4);
  await cursor.need(20);
  const version = cursor.uint32();
  if (version !== 2 && version !== 3)
    throw unsupported(path, `GGUF of version ${version} cannot be read`, "Convert it to version 3, little-endian.");
  const [count, entries] = [cursor.length64(), cursor.length64()];
  if (count > mostTensors(source.byteLength)) throw cursor.corrupt(`${count} tensors are named`);
  const said = new Map<string, Json>();
  const skipped: Skipped[] = [];
  for (let i = 0; i < entries; i++) {
    const key = await text(cursor, LONGEST_NAME);
    if (said.has(key) || skipped.some(({ name }) => name === key)) throw cursor.corrupt(`${quoted(key)} is said twice`);
    await cursor.need(4);
    const value = await readValue(cursor, cursor.uint32(), key.startsWith("tokenizer.") ? 0 : LONGEST_LIST);
    if (value instanceof LongList) skipped.push({ name: key, what: `a list of ${value.length}` });
    else said.set(key, value);
  }
  const infos: Info[] = [];
  for (let i = 0; i < count; i++) infos.push(await infoOf(cursor));
  const alignment = said.get(ALIGNMENT) ?? 32;
  if (!isCount(alignment) || alignment === 0) throw cursor.corrupt(`${ALIGNMENT} is ${String(alignment)}`);
  const begin = Math.ceil(cursor.position / alignment) * alignment;
  const tensors: SourceTensor[] = [];
  const unreadable = new Map<string, string>();
  for (const info of infos) {
    const { name, type, shape, elements } = info;
    const [plain, block] = [PLAIN_TYPES[type], BLOCK_TYPES.get(type)];
    const bytesOf = (byteLength: number) => partOf(source, begin + info.begin, byteLength);
    if (plain !== undefined) {
      const bytes = bytesOf(elements * bytesPerElement(plain));
      tensors.push(wholeTensor(name, { dtype: plain, shape, bytes }, basename(path)));
    } else if (block === undefined) unreadable.set(name, `it is quantized as ggml's type ${type}`);
    else {
      if ((shape.at(-1) ?? 1) % block.elements !== 0) throw cursor.corrupt(`${block.name} [${shape}] ends in a block`);
      const bytes = unpacked(bytesOf((elements / block.elements) * block.bytes), block);
      tensors.push(wholeTensor(name, { dtype: "F32", shape, bytes }, basename(path)));
    }
  }
  return { tensors, values: Object.fromEntries(said), unreadable, skipped };
});

interface Info {
  readonly name: string;
  readonly type: number;
  readonly shape: readonly number[];
  readonly elements: number;
  /** From where the data begin. */
  readonly begin: number;
}

/** What stands before the data of a tensor; its first dimension is the one whose elements lie together. */
async function infoOf(cursor: ByteCursor): Promise<Info> {
  const name = await text(cursor, LONGEST_NAME);
  await cursor.need(4);
  const dimensions = cursor.uint32();
  if (dimensions > MOST_DIMENSIONS) throw cursor.corrupt(`a tensor has ${dimensions} dimensions`);
  await cursor.need(8 * dimensions + 12);
  const shape = Array.from({ length: dimensions }, () => cursor.length64()).reverse();
  const elements = elementCount(shape);
  if (elements === undefined) throw cursor.corrupt(`a tensor has the shape [${shape}]`);
  return { name, shape, elements, type: cursor.uint32(), begin: cursor.length64() };
}

async function text(cursor: ByteCursor, longest: number): Promise<string> {
  await cursor.need(8);
  const length = cursor.length64();
  if (length > longest) throw cursor.corrupt(`a text of ${length} bytes is named`);
  await cursor.need(length);
  return new TextDecoder().decode(cursor.take(length));
}

const TEXT = 8;
const LIST = 9;

/** By type: bytes, and the number that they are. */
const NUMBERS: readonly (readonly [width: number, read: (view: DataView) => Json] | undefined)[] = [
  [1, (view) => view.getUint8(0)],
  [1, (view) => view.getInt8(0)],
  [2, (view) => view.getUint16(0, true)],
  [2, (view) => view.getInt16(0, true)],
  [4, (view) => view.getUint32(0, true)],
  [4, (view) => view.getInt32(0, true)],
  [4, (view) => finite(view.getFloat32(0, true))],
  [1, (view) => view.getUint8(0) !== 0],
  undefined,
  undefined,
  [8, (view) => exact(view.getBigUint64(0, true))],
  [8, (view) => exact(view.getBigInt64(0, true))],
  [8, (view) => finite(view.getFloat64(0, true))],
];

const finite = (number: number): Json => (Number.isFinite(number) ? number : String(number));
const exact = (number: bigint): Json => (Number.isSafeInteger(Number(number)) ? Number(number) : String(number));

class LongList {
  constructor(readonly length: number) {}
}

async function readValue(cursor: ByteCursor, type: number, longest: number, depth = 0): Promise<Json | LongList> {
  if (type === TEXT) return text(cursor, LONGEST_TEXT);
  const number = NUMBERS[type];
  if (number !== undefined) {
    const [width, read] = number;
    await cursor.need(width);
    const { buffer, byteOffset } = cursor.take(width);
    return read(new DataView(buffer, byteOffset, width));
  }
  if (type !== LIST || depth > 4) throw cursor.corrupt(`a value has the type ${type}`);
  await cursor.need(12);
  const [inner, length] = [cursor.uint32(), cursor.length64()];
  const width = NUMBERS[inner]?.[0];
  let isLong = length > longest;
  if (isLong && width !== undefined) cursor.skip(width * length);
  const items: Json[] = [];
  for (let i = 0; i < length && !(isLong && width !== undefined); i++) {
    const item = await readValue(cursor, inner, longest, depth + 1);
    isLong ||= item instanceof LongList;
    if (!isLong) items.push(item as Json);
  }
  return isLong ? new LongList(length) : items;
}

/** The float32 that blocks stand for: each read unpacks the blocks that it touches. */
function unpacked(packed: ByteSource, { elements, bytes, unpack }: BlockType): ByteSource {
  const width = elements * Float32Array.BYTES_PER_ELEMENT;
  return {
    path: packed.path,
    byteLength: (packed.byteLength / bytes) * width,
    async read(target, position) {
      checkRange(this, position, target.byteLength);
      const first = Math.floor(position / width);
      const end = Math.ceil((position + target.byteLength) / width);
      const blocks = await readBytes(packed, first * bytes, (end - first) * bytes);
      const numbers = new Float32Array(elements);
      const unpackedBytes = new Uint8Array(numbers.buffer);
      for (let i = first; i < end; i++) {
        unpack(new DataView(blocks.buffer, (i - first) * bytes, bytes), numbers);
        const from = Math.max(0, position - i * width);
        const to = Math.min(width, position + target.byteLength - i * width);
        target.set(unpackedBytes.subarray(from, to), i * width + from - position);
      }
    },
  };
}
