/** Blocks of quantized numbers as ggml packs them, and the float32 that each stands for. Source: gguf.quants, whose order of roundings this is. */
import { float16 } from "../../format/numbers";

/** `elements` numbers in `bytes` bytes. */
export interface BlockType {
  readonly name: string;
  readonly elements: number;
  readonly bytes: number;
  unpack(block: DataView, out: Float32Array): void;
}

const { fround } = Math;
const half = (block: DataView, at: number): number => float16(block.getUint16(at, true));

/** 32 numbers of 4 bits, or 5 with the high ones apart: a scale, and an offset or a middle. */
function small(name: string, bits: 4 | 5, middle?: number): BlockType {
  const high = middle === undefined ? 4 : 2;
  const low = bits === 5 ? high + 4 : high;
  const unpack = (block: DataView, out: Float32Array): void => {
    const scale = half(block, 0);
    const offset = middle === undefined ? half(block, 2) : 0;
    const fifth = bits === 5 ? block.getUint32(high, true) : 0;
    for (let i = 0; i < 32; i++) {
      const four = (block.getUint8(low + (i % 16)) >> (i < 16 ? 0 : 4)) & 15;
      const number = four | (((fifth >>> i) & 1) << 4);
      out[i] = middle === undefined ? fround(scale * number) + offset : scale * (number - middle);
    }
  };
  return { name, elements: 32, bytes: low + 16, unpack };
}

/** Scale and offset of the 8 parts of a block, of 6 bits each in 12 bytes. */
function sixBits(block: DataView, at: number, part: number): [scale: number, offset: number] {
  const byte = (i: number): number => block.getUint8(at + i);
  if (part < 4) return [byte(part) & 63, byte(part + 4) & 63];
  const both = byte(part + 4);
  return [(both & 15) | ((byte(part - 4) >> 2) & 48), (both >> 4) | ((byte(part) >> 2) & 48)];
}

/** 256 numbers of 4 bits, or 5 with the high ones apart: each 32 have a scale and an offset. */
function large(name: string, bits: 4 | 5): BlockType {
  const low = bits === 5 ? 48 : 16;
  const unpack = (block: DataView, out: Float32Array): void => {
    for (let part = 0; part < 8; part++) {
      const [scale, offset] = sixBits(block, 4, part);
      const factor = fround(half(block, 0) * scale);
      const shift = fround(half(block, 2) * offset);
      for (let i = 0; i < 32; i++) {
        const four = (block.getUint8(low + 32 * (part >> 1) + i) >> (4 * (part & 1))) & 15;
        const fifth = bits === 5 ? (block.getUint8(16 + i) >> part) & 1 : 0;
        out[32 * part + i] = fround(factor * (four | (fifth << 4))) - shift;
      }
    }
  };
  return { name, elements: 256, bytes: low + 128, unpack };
}

type Number256 = (block: DataView, i: number, scale: number, offset: number) => number;

/** 256 numbers, each from a scale that stands at `scale`, and an offset behind it where there is one. */
function super256(name: string, bytes: number, scale: number, number: Number256): BlockType {
  const unpack = (block: DataView, out: Float32Array): void => {
    const factors = [half(block, scale), scale + 4 <= bytes ? half(block, scale + 2) : 0] as const;
    for (let i = 0; i < 256; i++) out[i] = number(block, i, ...factors);
  };
  return { name, elements: 256, bytes, unpack };
}

/** Two bits of number `i`, of 128 numbers in 32 bytes. */
const twoBits = (block: DataView, at: number, i: number): number =>
  (block.getUint8(at + 32 * (i >> 7) + (i & 31)) >> (2 * ((i >> 5) & 3))) & 3;

/** By the number that a file gives. */
export const BLOCK_TYPES: ReadonlyMap<number, BlockType> = new Map([
  [2, small("Q4_0", 4, 8)],
  [3, small("Q4_1", 4)],
  [6, small("Q5_0", 5, 16)],
  [7, small("Q5_1", 5)],
  [8, { name: "Q8_0", elements: 32, bytes: 34, unpack: unpackBytes }],
  [
    10,
    super256("Q2_K", 84, 80, (block, i, scale, offset) => {
      const both = block.getUint8(i >> 4);
      return fround(fround(scale * (both & 15)) * twoBits(block, 16, i)) - fround(offset * (both >> 4));
    }),
  ],
  [
    11,
    super256("Q3_K", 110, 108, (block, i, scale) => {
      const part = i >> 4;
      const four = (block.getUint8(96 + (part & 7)) >> (part < 8 ? 0 : 4)) & 15;
      const two = (block.getUint8(104 + (part & 3)) >> (2 * (part >> 2))) & 3;
      const isHigh = (block.getUint8(i & 31) >> (i >> 5)) & 1;
      return fround(scale * ((four | (two << 4)) - 32)) * (twoBits(block, 32, i) - (isHigh ? 0 : 4));
    }),
  ],
  [12, large("Q4_K", 4)],
  [13, large("Q5_K", 5)],
  [
    14,
    super256("Q6_K", 210, 208, (block, i, scale) => {
      const low = (block.getUint8(64 * (i >> 7) + (i & 63)) >> (4 * ((i >> 6) & 1))) & 15;
      const number = (low | (twoBits(block, 128, i) << 4)) - 32;
      return fround(scale * block.getInt8(192 + (i >> 4))) * number;
    }),
  ],
]);

function unpackBytes(block: DataView, out: Float32Array): void {
  const scale = half(block, 0);
  for (let i = 0; i < 32; i++) out[i] = scale * block.getInt8(2 + i);
}
