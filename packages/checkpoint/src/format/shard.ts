/** The file of a rank: its name, its header, and what a manifest says about it. */

import { platform } from "#platform";
import { type Box, byPlace, elementsIn } from "../layout/box";
import { PAGE } from "../stores/scratch";
import { joinCrc32 } from "./crc32";
import { bytesPerElement, type StoredDType } from "./dtype";
import { listText } from "./json/plain";
import { encodeSafetensorsHeader, type HeaderEntry } from "./safetensors-writer";
import type { Role } from "./source";

/** The file of a rank. A save that may replace another gives its files a `tag`, so that no reader of the old ones reads the new. */
export function shardName(rank: number, tag?: string): string {
  return `rank-${String(rank).padStart(5, "0")}${tag === undefined ? "" : `-${tag}`}.safetensors`;
}

/** The checksums of all boxes of a step, where its manifest does not list them. */
export function checksumsName(tag?: string): string {
  return `checksums${tag === undefined ? "" : `-${tag}`}.bin`;
}

/** A box of a tensor. */
export interface ShardBox {
  readonly tensor: { readonly name: string; readonly dtype: StoredDType };
  readonly box: Box;
}

export function byteLengthOf({ tensor, box }: ShardBox): number {
  return elementsIn(box) * bytesPerElement(tensor.dtype);
}

/** The order of tensors inside a file: wide elements first, so that every one is aligned; then by name. */
export function tensorOrder(a: ShardBox["tensor"], b: ShardBox["tensor"]): number {
  const width = bytesPerElement(b.dtype) - bytesPerElement(a.dtype);
  if (width !== 0 || a.name === b.name) return width;
  return a.name < b.name ? -1 : 1;
}

/** The order of boxes inside a file. */
export function fileOrder(a: { tensor: ShardBox["tensor"]; box: Box }, b: typeof a): number {
  return tensorOrder(a.tensor, b.tensor) || byPlace(a.box, b.box);
}

/** What a manifest says about a file as a whole. */
export interface FileRecord {
  readonly name: string;
  readonly byteLength: number;
  /** Of everything before the data. */
  readonly headerLength: number;
  readonly headerCrc32: number;
  readonly crc32: number;
  readonly sha256?: string;
  /** Where the checksums of boxes are in a file of their own: how many boxes this one has, and the CRC-32 of their checksums. */
  readonly boxes?: number;
  readonly boxesCrc32?: number;
}

export interface ManifestBox extends Box {
  readonly file: number;
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly crc32: number;
}

export interface ManifestTensor {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly role: Role;
  readonly follows?: string;
  readonly boxes: readonly ManifestBox[];
}

/** A file, and the checksums of its boxes. */
export interface WrittenShard {
  readonly file: FileRecord;
  readonly checksums: ArrayLike<number>;
}

/** From so many bytes on the data begin with a page. */
const LARGE = 1 << 20;

/** Two boxes of one tensor in one file need distinct keys; the first keeps the tensor's name. */
function keysOf(boxes: readonly ShardBox[]): string[] {
  const names = boxes.map(({ tensor }) => tensor.name);
  const taken = new Set(names);
  if (taken.size === names.length) return names;
  const seen = new Set<string>();
  return names.map((name) => {
    let key = name;
    for (let n = 1; seen.has(key); n++) {
      const candidate = `${name}#${n}`;
      if (!taken.has(candidate)) key = candidate;
    }
    seen.add(key);
    return key;
  });
}

/** For PyTorch's HuggingFaceStorageReader: where each tensor's entry begins. Further boxes are left out, so that it rejects the file. */
function shardMetadata(keys: readonly string[], boxes: readonly ShardBox[]): Record<string, string> {
  const first: string[] = [];
  boxes.forEach(({ tensor: { name }, box }, i) => {
    if (keys[i] === name) first.push(`${JSON.stringify(name)}:{"saved_offsets":${listText(box.offset)}}`);
  });
  return { format: "pt", DCP_VERSION: "1.0", DCP_SHARDING_INFO: `{${first.join(",")}}` };
}

/** The first bytes of a rank's file, and where in it each box begins; the last of `begins` is the end of the file. */
export function shardHeader(
  boxes: readonly ShardBox[],
  metadata?: Record<string, string>,
): { bytes: Uint8Array; begins: Float64Array } {
  const keys = keysOf(boxes);
  const bytes = boxes.reduce((sum, one) => sum + byteLengthOf(one), 0);
  const align = bytes < LARGE ? undefined : PAGE;
  return encodeSafetensorsHeader(entriesOf(keys, boxes), metadata ?? shardMetadata(keys, boxes), align);
}

function* entriesOf(keys: readonly string[], boxes: readonly ShardBox[]): Generator<HeaderEntry> {
  for (let i = 0; i < keys.length; i++) {
    const { tensor, box } = boxes[i]!;
    yield { name: keys[i]!, dtype: tensor.dtype, shape: box.size };
  }
}

/** What a manifest says about a file and its boxes, from the checksums of its parts. */
export function recordShard(
  name: string,
  header: { readonly byteLength: number; readonly crc32: number },
  begins: Float64Array,
  checksums: ArrayLike<number>,
  sha256?: string,
): WrittenShard {
  let whole = header.crc32;
  for (let i = 0; i < begins.length - 1; i++) whole = joinCrc32(whole, checksums[i]!, begins[i + 1]! - begins[i]!);
  const sizes = { byteLength: begins.at(-1)!, headerLength: header.byteLength };
  const file = { name, ...sizes, headerCrc32: header.crc32, crc32: whole, ...(sha256 ? { sha256 } : {}) };
  return { file, checksums };
}

const BUFFER = 2 << 20;

/** SHA-256 of an open file, as hexadecimal digits. */
export async function sha256Of(
  file: { read(target: Uint8Array, position: number): Promise<unknown> },
  byteLength: number,
): Promise<string> {
  const hash = await platform.sha256();
  const buffer = new Uint8Array(Math.min(BUFFER, byteLength));
  for (let position = 0; position < byteLength; position += buffer.length) {
    const piece = buffer.subarray(0, Math.min(buffer.length, byteLength - position));
    await file.read(piece, position);
    hash.update(piece);
  }
  return hash.digest();
}
