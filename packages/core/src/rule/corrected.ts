/**
 * State in 24 bits, `bf16x`: the upper 24 of a float32, rounded to nearest even, as 16 bits and a signed correction of 8.
 *
 *     w = upper 24 bits of x      high = (w + 128) >> 8      correction = w - 256 high
 *
 * `high` alone is bfloat16 of x. A block has the 16 bits of 256 elements, then their corrections. Infinities stay, and each NaN
 * becomes the same one: its sign differs between processors.
 */
import { PACKED_BLOCK, packedHead } from "./codebook";

const NAN = 0x7fc000;

/** Elements from `from` on, which begins a block. */
export function uncorrected(packed: Uint8Array, from: number, to: Float32Array): void {
  const bits = new Uint32Array(to.buffer, to.byteOffset, to.length);
  eachBlock(packed, from, to.length, (high, correction, at) => {
    for (let i = 0; i < correction.length; i++) bits[at + i] = (high[i]! << 16) + (correction[i]! << 8);
  });
}

/** Packs blocks from the one that begins at `from` on. */
export function corrected(values: Float32Array, packed: Uint8Array, from: number): void {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  eachBlock(packed, from, values.length, (high, correction, at) => {
    for (let i = 0; i < correction.length; i++) {
      const word = bits[at + i]!;
      const isNumber = (word & 0x7fffffff) <= 0x7f800000;
      const w = isNumber ? (word + 0x7f + ((word >>> 8) & 1)) >>> 8 : NAN;
      high[i] = (w + 0x80) >>> 8;
      correction[i] = w;
    }
  });
}

type Visit = (high: Uint16Array, correction: Int8Array, at: number) => void;

function eachBlock({ buffer, byteOffset }: Uint8Array, from: number, length: number, visit: Visit): void {
  const head = packedHead("bf16x");
  for (let at = 0; at < length; at += PACKED_BLOCK) {
    const count = Math.min(PACKED_BLOCK, length - at);
    const start = byteOffset + ((from + at) / PACKED_BLOCK) * (head + PACKED_BLOCK);
    visit(new Uint16Array(buffer, start, count), new Int8Array(buffer, start + head, count), at);
  }
}
