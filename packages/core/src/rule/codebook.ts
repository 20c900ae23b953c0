/** The 8-bit codes of optimizer state: values from 1 down to 1e-7 of a block's largest, denser the larger they are. */

/** q8: signed, for averages of gradients; uq8: twice as fine, for state that is never negative. */
export type CodedDType = "q8" | "uq8";

/** Formats of blocks: codes, or `bf16x` (corrected.ts). */
export type PackedDType = CodedDType | "bf16x";

/** Elements of a block: of codes those that share a scale. */
export const PACKED_BLOCK = 256;

/** Bytes before the codes of a block, or before its corrections: a scale in float32, or an element's 16 bits. */
export const packedHead = (format: PackedDType): number => (format === "bf16x" ? 2 * PACKED_BLOCK : 4);

/** Bytes of a whole block: its head, then a byte of each element. */
export const blockBytes = (format: PackedDType): number => packedHead(format) + PACKED_BLOCK;

/** Bytes of packed elements: blocks one after the other, of which the last may be cut after some of its codes. */
export function packedBytes(length: number, format: PackedDType): number {
  return 4 * Math.ceil(length / 4) + packedHead(format) * Math.ceil(length / PACKED_BLOCK);
}

/** True for formats of blocks, which have no bytes of each element. */
export function isPacked(format: string | undefined): format is PackedDType {
  return format === "q8" || format === "uq8" || format === "bf16x";
}

/** Below it a block's largest magnitude counts as 0, so that no value of it is subnormal: packing what was unpacked then changes no bit. */
export const LEAST_SCALE = 2 ** -104;

/** Segments of the codes: zero, seven decades of which each has twice as many codes as the one below, and 1. */
const SEGMENTS = 9;
const DECADES = 7;

/**
 * What turns magnitudes x in [0, 1] into codes n and back, all rounded to float32, by segment e:
 *
 *     e = number of edges <= x       n = floor(min(x * slope[e] + offset[e], cap[e]))       the nearest value
 *     e = floor(log2(signed ? 2 n + 1 : n + 1))      x = n * step[e] + start[e]
 *
 * each op rounded; of uq8 no x above 0 becomes 0. A byte of q8 is -n or n as a signed integer (n = 128 only where it is negative), one of uq8 is n.
 * Source: bitsandbytes, `create_dynamic_map`: means of neighbours in linspace(0.1, 1), times powers of ten, with 0 and 1.
 */
export interface Codebook {
  readonly edges: Float32Array;
  readonly slope: Float32Array;
  readonly offset: Float32Array;
  readonly cap: Float32Array;
  readonly step: Float32Array;
  readonly start: Float32Array;
  /** By byte. */
  readonly values: Float32Array;
}

const made = new Map<CodedDType, Codebook>();

/** The codes of a format; one object for each. */
export function codebookOf(format: CodedDType): Codebook {
  const codebook = made.get(format) ?? makeCodebook(format);
  made.set(format, codebook);
  return codebook;
}

function makeCodebook(format: CodedDType): Codebook {
  const signed = format === "q8";
  const [slope, offset, cap, step, start] = [0, 1, 2, 3, 4].map(() => new Float32Array(SEGMENTS)) as [
    Float32Array,
    Float32Array,
    Float32Array,
    Float32Array,
    Float32Array,
  ];
  /** The last and the first value of each segment. */
  const bounds: [first: number, last: number][] = [[0, 0]];
  for (let decade = 0; decade < DECADES; decade++) {
    const e = decade + 1;
    const count = 2 ** (signed ? decade : e);
    const first = signed ? count : count - 1;
    const power = Number(`1e${decade + 1 - DECADES}`);
    const valueAt = (n: number) => power * (0.1 + (0.9 * (n - first + 0.5)) / count);
    slope[e] = count / (0.9 * power);
    offset[e] = first - count / 9;
    cap[e] = first + count - 0.5;
    step[e] = (0.9 * power) / count;
    start[e] = valueAt(0);
    bounds.push([valueAt(first), valueAt(first + count - 1)]);
  }
  if (!signed) {
    // What is above 0 stays there: steps are divided by its root.
    slope[0] = 2 ** 127;
    cap[0] = 1.5;
  }
  const most = signed ? 128 : 255;
  bounds.push([1, 1]);
  offset[SEGMENTS - 1] = most;
  cap[SEGMENTS - 1] = most;
  start[SEGMENTS - 1] = 1;
  const edges = Float32Array.from({ length: SEGMENTS - 1 }, (_, e) => (bounds[e]![1] + bounds[e + 1]![0]) / 2);
  const values = Float32Array.from({ length: 256 }, (_, byte) => {
    const code = signed ? (byte << 24) >> 24 : byte;
    const n = Math.abs(code);
    const e = 31 - Math.clz32(signed ? 2 * n + 1 : n + 1);
    return Math.sign(code) * Math.fround(Math.fround(n * step[e]!) + start[e]!);
  });
  return { edges, slope, offset, cap, step, start, values };
}
