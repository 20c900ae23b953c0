/** Arrays of zarr 2 and 3 as TensorStore writes them: chunks of one shape, raw or packed by Zstandard, each a box. */
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import type { Json, SourceBox, SourceTensor } from "../../format/source";
import { elementCount } from "../../layout/box";
import { isCount } from "../../layout/counts";
import { strides } from "../../plan/runs";
import { corrupt, missing, unsupported } from "../bytes/errors";
import { boxOf } from "../bytes/foreign-tensor";
import { isObject, parseJson } from "../bytes/json";
import { type ByteSource, partOf, readBytes } from "../bytes/source";
import { stridedSource } from "../bytes/strided";
import { crc32c } from "./crc32c";
import type { UnpackedPieces } from "./zstd";

/** Names of element types, in zarr 2 after the sign of their byte order and in zarr 3. */
const DTYPES: Readonly<Record<string, StoredDType>> = {
  ...{ b1: "BOOL", i1: "I8", i2: "I16", i4: "I32", i8: "I64", u1: "U8", u2: "U16", u4: "U32", u8: "U64" },
  ...{ f2: "F16", f4: "F32", f8: "F64", c8: "C64" },
  ...{ bool: "BOOL", int8: "I8", int16: "I16", int32: "I32", int64: "I64" },
  ...{ uint8: "U8", uint16: "U16", uint32: "U32", uint64: "U64" },
  ...{ float16: "F16", bfloat16: "BF16", float32: "F32", float64: "F64", complex64: "C64" },
  ...{
    float8_e4m3fn: "F8_E4M3",
    float8_e5m2: "F8_E5M2",
    float8_e4m3fnuz: "F8_E4M3FNUZ",
    float8_e5m2fnuz: "F8_E5M2FNUZ",
  },
};
const MOST_DIMENSIONS = 32;
/** Where the index of a shard names no chunk. */
const ABSENT = 2n ** 64n - 1n;

type JsonObject = { readonly [key: string]: Json | undefined };

export interface ZarrStore {
  readonly path: string;
  /** Files or values by their keys. */
  readonly values: ReadonlyMap<string, ByteSource>;
  readonly pieces: UnpackedPieces;
  /** Chunks of nothing but the fill value were left out. */
  readonly isSparse: boolean;
}

interface Layout {
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly chunk: readonly number[];
  /** The inner chunks of a shard, where the chunks are shards. */
  readonly inner: readonly number[] | undefined;
  readonly isPacked: boolean;
  readonly isColumnMajor: boolean;
  keyOf(index: readonly number[]): string;
}

/** The file that describes an array: at `<array>/.zarray` or `<array>/zarr.json`. */
export const ZARR_FILE = /^(.+)\/(\.zarray|zarr\.json)$/;

/** The array under a name. @throws OptError CORRUPT, MISSING, UNSUPPORTED */
export async function readZarr(name: string, file: string, store: ZarrStore): Promise<SourceTensor> {
  const source = store.values.get(`${name}/${file}`)!;
  const json = parseJson(await readBytes(source, 0, source.byteLength), source.path);
  const layout = file === ".zarray" ? layoutOfTwo(json, source.path) : layoutOfThree(json, source.path);
  const { dtype, shape, chunk, inner } = layout;
  const count = shape.reduce((all, length, d) => all * Math.ceil(length / chunk[d]!), 1);
  // Each chunk has a key of its own.
  if (count > store.values.size && !store.isSparse)
    throw missing(store.path, `chunks of ${JSON.stringify(name)} are not there`);
  if (count > 1e6 + store.values.size) throw corrupt(source.path, `the array has ${count} chunks`);
  const boxes: SourceBox[] = [];
  for (const offset of corners(shape, chunk)) {
    const key = `${name}/${layout.keyOf(offset.map((begin, d) => begin / chunk[d]!))}`;
    const stored = store.values.get(key);
    if (stored === undefined && !store.isSparse)
      throw missing(store.path, `the chunk ${JSON.stringify(key)} is not there`);
    if (inner === undefined || stored === undefined) boxes.push(chunkBox(stored, offset, chunk, layout, store));
    else boxes.push(...(await innerBoxes(stored, offset, inner, layout, store)));
  }
  return { name, dtype, shape, boxes };
}

function layoutOfTwo(json: JsonObject, where: string): Layout {
  const { compressor, filters, order } = json;
  const packing = isObject(compressor) ? compressor.id : compressor;
  if (json.zarr_format !== 2 || (filters ?? null) !== null)
    throw unsupported(where, "zarr: filters are not known here");
  if ((packing ?? null) !== null && packing !== "zstd") throw unreadCodec(where, packing);
  const separator = json.dimension_separator ?? ".";
  if (separator !== "." && separator !== "/") throw corrupt(where, "zarr: keys of chunks have no known form");
  const type = String(json.dtype).replace(/^[<|]/, "");
  return {
    ...{ dtype: dtypeOf(type, where), ...gridOf(json.shape, json.chunks, where), inner: undefined },
    ...{ isPacked: packing === "zstd", isColumnMajor: order === "F" },
    keyOf: (index) => (index.length === 0 ? "0" : index.join(separator)),
  };
}

function layoutOfThree(json: JsonObject, where: string): Layout {
  const grid = configOf(json.chunk_grid);
  const encoding = configOf(json.chunk_key_encoding);
  const separator = encoding.settings.separator ?? "/";
  if (
    json.zarr_format !== 3 ||
    grid.name !== "regular" ||
    encoding.name !== "default" ||
    !/^[./]$/.test(String(separator))
  ) {
    throw unsupported(where, "zarr: chunks of another kind are not known here");
  }
  const { shape, chunk } = gridOf(json.shape, grid.settings.chunk_shape, where);
  const [outer, ...others] = codecsOf(json.codecs);
  const isSharded = outer?.name === "sharding_indexed" && others.length === 0;
  const { settings } = outer ?? { settings: {} as JsonObject };
  const index = isSharded
    ? codecsOf(settings.index_codecs)
        .map(({ name }) => name)
        .join()
    : INDEX;
  if (index !== INDEX || (settings.index_location ?? "end") !== "end") throw unreadCodec(where, `an index of ${index}`);
  const codecs = codecsOf(isSharded ? settings.codecs : json.codecs);
  const names = codecs.map(({ name }) => name).join();
  const isLittle = (codecs[0]?.settings.endian ?? "little") === "little";
  if (!/^bytes(,zstd)?$/.test(names) || !isLittle) throw unreadCodec(where, names);
  const inner = isSharded ? gridOf(chunk, settings.chunk_shape, where).chunk : undefined;
  if (inner?.some((length, d) => chunk[d]! % length !== 0))
    throw corrupt(where, "zarr: inner chunks do not fill their shard");
  return {
    ...{ dtype: dtypeOf(String(json.data_type), where), shape, chunk, inner },
    ...{ isPacked: names.endsWith("zstd"), isColumnMajor: false },
    keyOf: (index) => ["c", ...index].join(separator as string),
  };
}

const INDEX = "bytes,crc32c";

interface Codec {
  readonly name: Json | undefined;
  readonly settings: JsonObject;
}

function configOf(json: Json | undefined): Codec {
  if (!isObject(json)) return { name: json, settings: {} };
  return { name: json.name, settings: isObject(json.configuration) ? json.configuration : {} };
}

const codecsOf = (json: Json | undefined): Codec[] => (Array.isArray(json) ? json.map(configOf) : []);

const unreadCodec = (where: string, codec: unknown) =>
  unsupported(
    where,
    `zarr: the codec ${JSON.stringify(codec)?.slice(0, 50)} is not known here`,
    "Save with Zstandard.",
  );

function dtypeOf(name: string, where: string): StoredDType {
  if (Object.hasOwn(DTYPES, name)) return DTYPES[name]!;
  throw unsupported(where, `zarr: the element type ${JSON.stringify(name.slice(0, 50))} is not known here`);
}

/** @throws OptError CORRUPT unless the lengths are counts, and chunks have elements */
function gridOf(shape: unknown, chunk: unknown, where: string): Pick<Layout, "shape" | "chunk"> {
  const isShape = (list: unknown): list is number[] =>
    Array.isArray(list) && list.every(isCount) && list.length <= MOST_DIMENSIONS && elementCount(list) !== undefined;
  const isGrid = isShape(shape) && isShape(chunk) && shape.length === chunk.length && !chunk.includes(0);
  if (!isGrid) throw corrupt(where, "zarr: the shapes of the array and its chunks do not fit");
  return { shape, chunk };
}

/** The first element of each chunk, row-major. */
function* corners(shape: readonly number[], chunk: readonly number[]): Generator<number[]> {
  if (shape.includes(0)) return;
  const offset = shape.map(() => 0);
  for (let d = 0; d >= 0; ) {
    yield [...offset];
    for (d = shape.length - 1; d >= 0; d--) {
      offset[d]! += chunk[d]!;
      if (offset[d]! < shape[d]!) break;
      offset[d] = 0;
    }
  }
}

/** The part of a chunk that is in the array. `stored`: undefined for a chunk of zeros. */
function chunkBox(
  stored: ByteSource | undefined,
  offset: readonly number[],
  chunk: readonly number[],
  { dtype, shape, isPacked, isColumnMajor }: Layout,
  { path, pieces }: ZarrStore,
): SourceBox {
  const size = chunk.map((length, d) => Math.min(length, shape[d]! - offset[d]!));
  const bytesPer = bytesPerElement(dtype);
  const byteLength = elementCount(chunk)! * bytesPer;
  if (!Number.isSafeInteger(byteLength)) throw corrupt(path, `zarr: a chunk has the shape [${chunk}]`);
  const box = (bytes: ByteSource, file: string) => boxOf({ dtype, shape: size, bytes }, file, offset);
  if (stored === undefined) return box(zeros(path, elementCount(size)! * bytesPer), path);
  if (!isPacked && stored.byteLength !== byteLength) {
    throw corrupt(stored.path, `zarr: a chunk must be ${byteLength} bytes, got ${stored.byteLength}`);
  }
  const whole = isPacked ? pieces.source(stored, byteLength) : stored;
  const steps = isColumnMajor ? strides(chunk.toReversed(), 1).reverse() : strides(chunk, 1);
  const view = { bytesPerElement: bytesPer, offset: 0, shape: size, strides: steps };
  return box(stridedSource(whole, view), stored.path);
}

function zeros(path: string, byteLength: number): ByteSource {
  return {
    path,
    byteLength,
    async read(target) {
      target.fill(0);
    },
  };
}

/** The chunks of a shard, whose index of places and lengths is at its end. @throws OptError CORRUPT */
async function innerBoxes(
  shard: ByteSource,
  offset: readonly number[],
  inner: readonly number[],
  layout: Layout,
  store: ZarrStore,
): Promise<SourceBox[]> {
  const count = layout.chunk.reduce((all, length, d) => all * (length / inner[d]!), 1);
  const begin = shard.byteLength - 16 * count - 4;
  const index = await readBytes(shard, begin, 16 * count + 4);
  const view = new DataView(index.buffer, index.byteOffset, index.byteLength);
  if (view.getUint32(16 * count, true) !== crc32c(index.subarray(0, -4))) {
    throw corrupt(shard.path, "zarr: the checksum of a shard's index is wrong");
  }
  const boxes: SourceBox[] = [];
  let at = 0;
  for (const corner of corners(layout.chunk, inner)) {
    const [place, byteLength] = [view.getBigUint64(at, true), view.getBigUint64(at + 8, true)];
    at += 16;
    const first = corner.map((begin, d) => offset[d]! + begin);
    if (first.some((begin, d) => begin >= layout.shape[d]!)) continue;
    const isAbsent = place === ABSENT && byteLength === ABSENT;
    if (isAbsent && !store.isSparse) throw missing(shard.path, `zarr: the chunk at [${first}] is not there`);
    const stored = isAbsent ? undefined : partOf(shard, Number(place), Number(byteLength));
    boxes.push(chunkBox(stored, first, inner, layout, store));
  }
  return boxes;
}
