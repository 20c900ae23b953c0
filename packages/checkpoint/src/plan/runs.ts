/** From boxes to bytes: the contiguous runs that copying a region between two row-major boxes consists of. */
import type { Box } from "../layout/box";

export interface Run {
  /** First byte inside the source box. */
  readonly from: number;
  /** First byte inside the target box. */
  readonly to: number;
  readonly length: number;
}

/** The runs of `region` from box to box, ascending on both sides and as long as both sides allow. */
export function* runsOf(source: Box, target: Box, region: Box, elementBytes: number): Generator<Run> {
  const rank = region.size.length;
  // Trailing dimensions that the region spans whole on both sides melt into one run with the dimension before them.
  let inner = rank;
  let length = elementBytes;
  while (inner > 0) {
    inner--;
    length *= region.size[inner]!;
    if (region.size[inner] !== source.size[inner] || region.size[inner] !== target.size[inner]) break;
  }
  const sourceStrides = strides(source.size, elementBytes);
  const targetStrides = strides(target.size, elementBytes);
  let from = 0;
  let to = 0;
  for (let d = 0; d < rank; d++) {
    from += (region.offset[d]! - source.offset[d]!) * sourceStrides[d]!;
    to += (region.offset[d]! - target.offset[d]!) * targetStrides[d]!;
  }
  const position = new Array<number>(inner).fill(0);
  for (;;) {
    yield { from, to, length };
    let d = inner - 1;
    for (; d >= 0; d--) {
      from += sourceStrides[d]!;
      to += targetStrides[d]!;
      if (++position[d]! < region.size[d]!) break;
      from -= region.size[d]! * sourceStrides[d]!;
      to -= region.size[d]! * targetStrides[d]!;
      position[d] = 0;
    }
    if (d < 0) return;
  }
}

function strides(size: readonly number[], elementBytes: number): number[] {
  const result = new Array<number>(size.length);
  let stride = elementBytes;
  for (let d = size.length - 1; d >= 0; d--) {
    result[d] = stride;
    stride *= size[d]!;
  }
  return result;
}

/** Copies `region` between two boxes held in memory. */
export function copyRegion(
  source: Box,
  sourceBytes: Uint8Array,
  target: Box,
  targetBytes: Uint8Array,
  region: Box,
  elementBytes: number,
): void {
  for (const { from, to, length } of runsOf(source, target, region, elementBytes)) {
    copyBytes(sourceBytes, from, targetBytes, to, length);
  }
}

/** A view costs more than copying a few bytes one by one. */
export function copyBytes(source: Uint8Array, from: number, target: Uint8Array, to: number, length: number): void {
  if (length > 64) target.set(source.subarray(from, from + length), to);
  else for (let i = 0; i < length; i++) target[to + i] = source[from + i]!;
}
