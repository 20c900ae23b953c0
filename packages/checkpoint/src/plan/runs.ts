/** From boxes to bytes: the contiguous runs that copying a region between two row-major boxes consists of. */
import { type Box, elementsIn } from "../layout/box";

export interface Run {
  readonly from: number;
  readonly to: number;
  readonly length: number;
}

/** How many dimensions, from the first on, must be walked through, and the bytes of a run: what lies in one piece on both sides. */
function walkOf(source: Box, target: Box, region: Box, elementBytes: number): { inner: number; length: number } {
  // Trailing dimensions that the region spans whole on both sides melt into one run with the dimension before them.
  let inner = region.size.length;
  let length = elementBytes;
  while (inner > 0) {
    inner--;
    length *= region.size[inner]!;
    if (region.size[inner] !== source.size[inner] || region.size[inner] !== target.size[inner]) break;
  }
  return { inner, length };
}

/** The bytes of each run of `region`. */
export function runLength(source: Box, target: Box, region: Box, elementBytes: number): number {
  return walkOf(source, target, region, elementBytes).length;
}

/** Where in a box an element of the tensor lies, in bytes. */
export function placeIn(box: Box, element: readonly number[], elementBytes: number): number {
  let place = 0;
  for (let d = 0; d < box.size.length; d++) place = place * box.size[d]! + element[d]! - box.offset[d]!;
  return place * elementBytes;
}

/** The only run of `region`, or undefined where there are several: the quick answer for what is asked most. */
export function onlyRun(source: Box, target: Box, region: Box, elementBytes: number): Run | undefined {
  const { inner, length } = walkOf(source, target, region, elementBytes);
  for (let d = 0; d < inner; d++) if (region.size[d]! > 1) return undefined;
  const { offset } = region;
  return { from: placeIn(source, offset, elementBytes), to: placeIn(target, offset, elementBytes), length };
}

/** The runs of `region` from box to box, ascending on both sides and as long as both sides allow. */
export function* runsOf(source: Box, target: Box, region: Box, elementBytes: number): Generator<Run> {
  const { inner, length } = walkOf(source, target, region, elementBytes);
  const sourceStrides = strides(source.size, elementBytes);
  const targetStrides = strides(target.size, elementBytes);
  let from = placeIn(source, region.offset, elementBytes);
  let to = placeIn(target, region.offset, elementBytes);
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

/** How far apart the elements of a row-major box are along each dimension, in units of which an element has so many. */
export function strides(size: readonly number[], element: number): number[] {
  const result = new Array<number>(size.length);
  let stride = element;
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
  for (const { from, to, length } of runsOf(source, target, region, elementBytes))
    copyBytes(sourceBytes, from, targetBytes, to, length);
}

/** The bytes of a region of a box: where they lie, if that is in one piece, else copied into what `make` gives. */
export function cutOut(
  box: Box,
  bytes: Uint8Array,
  region: Box,
  elementBytes: number,
  make: (byteLength: number) => Uint8Array,
): Uint8Array {
  const only = onlyRun(box, region, region, elementBytes);
  if (only) return bytes.subarray(only.from, only.from + only.length);
  const cut = make(elementsIn(region) * elementBytes);
  copyRegion(box, bytes, region, cut, region, elementBytes);
  return cut;
}

/** A view costs more than copying a few bytes one by one. */
export function copyBytes(source: Uint8Array, from: number, target: Uint8Array, to: number, length: number): void {
  if (length > 64) target.set(source.subarray(from, from + length), to);
  else for (let i = 0; i < length; i++) target[to + i] = source[from + i]!;
}
