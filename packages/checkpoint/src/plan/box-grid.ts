/** Boxes that form a full grid in row-major order, as layouts make them: searched along each dimension on its own. */
import type { Box } from "../layout/box";

export class BoxGrid {
  /** Per dimension the ends of the grid's intervals (they touch) and how many boxes lie between two neighbours along it. */
  readonly #begins: readonly (readonly number[])[];
  readonly #ends: readonly (readonly number[])[];
  readonly #strides: readonly number[];
  /** Of the search in progress: the first interval and how many, per dimension. Kept, because thousands of searches follow each other. */
  readonly #firsts: number[];
  readonly #counts: number[];

  private constructor(begins: number[][], ends: number[][], strides: number[]) {
    this.#begins = begins;
    this.#ends = ends;
    this.#strides = strides;
    this.#firsts = strides.map(() => 0);
    this.#counts = strides.map(() => 0);
  }

  /** The grid that these boxes form, or undefined if they form no grid. */
  static of(boxes: readonly Box[]): BoxGrid | undefined {
    const rank = boxes[0]?.offset.length ?? 0;
    const begins: number[][] = [];
    const ends: number[][] = [];
    const strides = new Array<number>(rank);
    let stride = 1;
    for (let d = rank - 1; d >= 0; d--) {
      strides[d] = stride;
      const [begin, end]: [number[], number[]] = [[], []];
      for (let id = 0; id < boxes.length; id += stride) {
        const from = boxes[id]!.offset[d]!;
        if (from < (end.at(-1) ?? 0) || boxes[id]!.size[d]! === 0) break;
        begin.push(from);
        end.push(from + boxes[id]!.size[d]!);
      }
      begins[d] = begin;
      ends[d] = end;
      stride *= begin.length;
    }
    if (rank === 0 || stride !== boxes.length) return undefined;
    for (let d = 0; d < rank; d++) {
      const [begin, end, step] = [begins[d]!, ends[d]!, strides[d]!];
      let part = 0;
      for (let id = 0, left = step; id < boxes.length; id++) {
        const box = boxes[id]!;
        if (box.offset[d] !== begin[part] || box.offset[d]! + box.size[d]! !== end[part]) return undefined;
        if (--left > 0) continue;
        left = step;
        if (++part === begin.length) part = 0;
      }
    }
    return new BoxGrid(begins, ends, strides);
  }

  /** True where the grid leaves nothing of a tensor of this shape out. */
  covers(shape: readonly number[]): boolean {
    return this.#begins.every((begins, d) => {
      const ends = this.#ends[d]!;
      return ends.at(-1) === shape[d] && begins.every((begin, i) => begin === (i === 0 ? 0 : ends[i - 1]));
    });
  }

  /** The indices, ascending, of the boxes that share an element with `box`. */
  touching(box: Box): number[] {
    const rank = this.#strides.length;
    const [firsts, counts] = [this.#firsts, this.#counts];
    let total = 1;
    for (let d = 0; d < rank; d++) {
      const from = box.offset[d]!;
      const to = from + box.size[d]!;
      const begins = this.#begins[d]!;
      const first = firstAbove(this.#ends[d]!, from);
      let last = first;
      while (last < begins.length && begins[last]! < to) last++;
      firsts[d] = first;
      counts[d] = last - first;
      total *= last - first;
    }
    const found = new Array<number>(total);
    if (total === 0) return found;
    found[0] = 0;
    for (let d = 0, bases = 1; d < rank; bases *= counts[d++]!) {
      const [first, parts, stride] = [firsts[d]!, counts[d]!, this.#strides[d]!];
      // In place from the back, so that nothing is overwritten before it is used.
      for (let base = bases - 1; base >= 0; base--) {
        const start = found[base]!;
        for (let part = parts - 1; part >= 0; part--) found[base * parts + part] = start + (first + part) * stride;
      }
    }
    return found;
  }
}

/** The first position in ascending values that is above the bound. */
export function firstAbove(ascending: readonly number[], bound: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}
