/** State packed in blocks: what the bytes mean, and how a rule computes with them. */
import type { TypedArray } from "../values/dtype";
import {
  blockBytes,
  type Codebook,
  type CodedDType,
  codebookOf,
  isPacked,
  LEAST_SCALE,
  PACKED_BLOCK,
  type PackedDType,
} from "./codebook";
import { corrected, uncorrected } from "./corrected";
import type { Program } from "./program";
import { type MakeUpdate, type StoredDType, type StoredFormats, type UpdateArrays, withMirror } from "./stored";

/** Elements that are unpacked at a time: whole blocks, few enough for the second cache. */
const ROOM = 64 * PACKED_BLOCK;

/** The bytes of a block, without those after it, and its scale. */
function blockAt({ buffer, byteOffset }: Uint8Array, block: number, length: number) {
  const at = byteOffset + block * blockBytes("q8");
  return { scale: new Float32Array(buffer, at, 1), codes: new Uint8Array(buffer, at + 4, length) };
}

/** Elements from `from` on, which begins a block. */
export function unpack(packed: Uint8Array, format: PackedDType, from: number, to: Float32Array): void {
  if (format === "bf16x") uncorrected(packed, from, to);
  else decode(packed, format, from, to);
}

/** Packs blocks from the one that begins at `from` on, of which the last may be cut by the end of all. */
export function pack(values: Float32Array, packed: Uint8Array, format: PackedDType, from: number): void {
  if (format === "bf16x") corrected(values, packed, from);
  else encode(values, packed, format, from);
}

/** Codebook value times scale. */
function decode(packed: Uint8Array, format: CodedDType, from: number, to: Float32Array): void {
  const { values } = codebookOf(format);
  for (let at = 0; at < to.length; at += PACKED_BLOCK) {
    const count = Math.min(PACKED_BLOCK, to.length - at);
    const { scale, codes } = blockAt(packed, (from + at) / PACKED_BLOCK, count);
    const by = scale[0]!;
    for (let i = 0; i < count; i++) to[at + i] = values[codes[i]!]! * by;
  }
}

function encode(values: Float32Array, packed: Uint8Array, format: CodedDType, from: number): void {
  const codebook = codebookOf(format);
  for (let at = 0; at < values.length; at += PACKED_BLOCK) {
    const block = values.subarray(at, at + PACKED_BLOCK);
    const { scale, codes } = blockAt(packed, (from + at) / PACKED_BLOCK, block.length);
    scale[0] = scaleOf(block, format);
    codes.set(codesOf(block, scale[0], format, codebook));
  }
}

/** The finite value of largest magnitude, a positive one of two; of q8 its negative, because codes reach one further below zero. */
function scaleOf(block: Float32Array, format: CodedDType): number {
  let [high, low] = [0, 0];
  for (const value of block) {
    if (value > high && value < Infinity) high = value;
    if (value < low && value > -Infinity) low = value;
  }
  const extreme = high >= -low ? high : low;
  if (Math.abs(extreme) < LEAST_SCALE) return 0;
  return format === "q8" ? -extreme : extreme;
}

/** The codes nearest to value / scale; 0 for what is not finite. The reciprocal is rounded, and so is the product. */
function codesOf(block: Float32Array, scale: number, format: CodedDType, codebook: Codebook): Uint8Array {
  const { edges, slope, offset, cap } = codebook;
  const codes = new Uint8Array(block.length);
  if (scale === 0) return codes;
  const inverse = Math.fround(1 / scale);
  const signed = format === "q8";
  for (let i = 0; i < block.length; i++) {
    const value = block[i]!;
    if (!Number.isFinite(value)) continue;
    const x = Math.fround(value * inverse);
    const magnitude = signed ? Math.abs(x) : Math.max(x, 0);
    let e = edges.length;
    while (e > 0 && magnitude < edges[e - 1]!) e--;
    const n = Math.floor(Math.min(Math.fround(Math.fround(magnitude * slope[e]!) + offset[e]!), cap[e]!));
    codes[i] = signed ? (x < 0 ? -n : Math.min(n, 127)) : n;
  }
  return codes;
}

/** The update of arrays of which some are packed, from that of float32 ones. */
export function packedUpdate(program: Program, stored: StoredFormats, make: MakeUpdate): UpdateArrays {
  const update = make(stored.map((format) => (isPacked(format) ? "f32" : (format as StoredDType))));
  if (!stored.some(isPacked)) return update;
  const written = withMirror(program, stored).outputs.map(({ slot }) => slot);
  return (buffers, scalars) => {
    const { length } = buffers[0]!;
    const rooms = stored.map((format) => (isPacked(format) ? new Float32Array(Math.min(length, ROOM)) : undefined));
    for (let from = 0; from < length; from += ROOM) {
      const to = Math.min(from + ROOM, length);
      const parts = buffers.map((array, slot): TypedArray => {
        const room = rooms[slot]?.subarray(0, to - from);
        if (room === undefined) return array.subarray(from, to);
        unpack(array as Uint8Array, stored[slot] as PackedDType, from, room);
        return room;
      });
      update(parts, scalars);
      for (const slot of written) {
        if (rooms[slot] === undefined) continue;
        pack(parts[slot] as Float32Array, buffers[slot] as Uint8Array, stored[slot] as PackedDType, from);
      }
    }
  };
}
