/** Boxes: rectangular parts of a tensor. Offsets and sizes count elements, one per dimension. */

export interface Box {
  readonly offset: readonly number[];
  readonly size: readonly number[];
}

/** The box of the whole tensor. */
export function wholeOf(shape: readonly number[]): Box {
  return { offset: shape.map(() => 0), size: shape };
}

export function elementsIn(box: Box): number {
  let count = 1;
  for (const length of box.size) count *= length;
  return count;
}

/** The part that both boxes hold, or undefined where they share no element. */
export function intersect(a: Box, b: Box): Box | undefined {
  const rank = a.offset.length;
  const offset = new Array<number>(rank);
  const size = new Array<number>(rank);
  for (let d = 0; d < rank; d++) {
    const begin = Math.max(a.offset[d]!, b.offset[d]!);
    const end = Math.min(a.offset[d]! + a.size[d]!, b.offset[d]! + b.size[d]!);
    if (end <= begin) return undefined;
    offset[d] = begin;
    size[d] = end - begin;
  }
  return { offset, size };
}

/** The number of elements of the intersection. */
export function elementsShared(a: Box, b: Box): number {
  let count = 1;
  for (let d = 0; d < a.offset.length; d++) {
    const [from, to] = [a.offset[d]!, b.offset[d]!];
    const length = Math.min(from + a.size[d]!, to + b.size[d]!) - Math.max(from, to);
    if (length <= 0) return 0;
    count *= length;
  }
  return count;
}

export function sameBox(a: Box, b: Box): boolean {
  for (let d = 0; d < a.offset.length; d++) if (a.offset[d] !== b.offset[d] || a.size[d] !== b.size[d]) return false;
  return true;
}

/** Row-major by where they begin. */
export function byPlace(a: Box, b: Box): number {
  for (let d = 0; d < a.offset.length; d++) {
    const difference = a.offset[d]! - b.offset[d]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** True where the box lies within a tensor of this shape. */
export function fits(box: Box, shape: readonly number[]): boolean {
  if (box.offset.length !== shape.length || box.size.length !== shape.length) return false;
  for (let d = 0; d < shape.length; d++) {
    const [begin, count] = [box.offset[d]!, box.size[d]!];
    if (!Number.isSafeInteger(begin) || !Number.isSafeInteger(count)) return false;
    if (begin < 0 || count < 0 || begin + count > shape[d]!) return false;
  }
  return true;
}

/** What is left of a box without the holes, as disjoint boxes. */
export function subtract(box: Box, holes: readonly Box[]): Box[] {
  let rest = [box];
  for (const hole of holes) rest = rest.flatMap((piece) => without(piece, hole));
  return rest;
}

function without(box: Box, hole: Box): Box[] {
  const inside = intersect(box, hole);
  if (!inside) return [box];
  const rest: Box[] = [];
  const offset = [...box.offset];
  const size = [...box.size];
  for (let d = 0; d < offset.length; d++) {
    const [begin, end] = [offset[d]!, offset[d]! + size[d]!];
    const [from, to] = [inside.offset[d]!, inside.offset[d]! + inside.size[d]!];
    if (from > begin) rest.push({ offset: offset.with(d, begin), size: size.with(d, from - begin) });
    if (end > to) rest.push({ offset: offset.with(d, to), size: size.with(d, end - to) });
    offset[d] = from;
    size[d] = to - from;
  }
  return rest;
}

/** As Python writes slices: [0:2, 4:8]. */
export function describeBox(box: Box): string {
  return `[${box.offset.map((begin, d) => `${begin}:${begin + box.size[d]!}`).join(", ")}]`;
}

/** Number of elements, or undefined where the product leaves the exact integers. */
export function elementCount(shape: readonly number[]): number | undefined {
  let count = 1;
  for (const length of shape) count *= length;
  return Number.isSafeInteger(count) ? count : undefined;
}
