/** Finds the boxes that touch a given one: sorted by one dimension, then the next, so that a search on a grid is logarithmic. */
import { type Box, elementsIn, elementsShared } from "../layout/box";

const LEAF = 4;

/** Groups of boxes, each with an interval of its own along a dimension, ascending. */
interface Level {
  readonly dimension: number;
  readonly begins: readonly number[];
  readonly ends: readonly number[];
  /** The largest end up to each group: what lets a search start in the middle. */
  readonly reach: readonly number[];
  /** Where in the order each group begins, and where the last one ends. */
  readonly starts: readonly number[];
  /** Tells the boxes of each group apart. */
  readonly inside: (Level | undefined)[];
  readonly isCrossing: boolean;
}

export class BoxIndex {
  readonly #boxes: readonly Box[];
  readonly #order: Uint32Array;
  readonly #root: Level | undefined;
  /** Boxes that no level tells apart from all others. */
  readonly #doubtful: number[] = [];

  constructor(boxes: readonly Box[]) {
    this.#boxes = boxes;
    this.#order = new Uint32Array(boxes.length);
    for (let id = 0; id < boxes.length; id++) this.#order[id] = id;
    this.#root = this.#build(0, boxes.length, boxes[0]?.offset.map((_, d) => d) ?? []);
  }

  /** The indices, ascending, of the boxes that share an element with `box`. */
  touching(box: Box): number[] {
    const found: number[] = [];
    if (elementsIn(box) === 0) return found;
    this.#search(this.#root, 0, this.#order.length, box, found);
    for (let i = 1; i < found.length; i++) if (found[i]! < found[i - 1]!) return found.sort((a, b) => a - b);
    return found;
  }

  /** Two boxes that share an element, or undefined where all are disjoint. */
  overlap(): [number, number] | undefined {
    for (const id of this.#doubtful) {
      const other = this.touching(this.#boxes[id]!).find((found) => found !== id);
      if (other !== undefined) return [Math.min(id, other), Math.max(id, other)];
    }
    return undefined;
  }

  #search(level: Level | undefined, from: number, to: number, box: Box, found: number[]): void {
    if (!level) {
      for (let i = from; i < to; i++) {
        const id = this.#order[i]!;
        if (elementsShared(this.#boxes[id]!, box) > 0) found.push(id);
      }
      return;
    }
    const { dimension, begins, ends, reach, starts, inside } = level;
    const begin = box.offset[dimension]!;
    const end = begin + box.size[dimension]!;
    for (let i = firstAbove(reach, begin); i < begins.length && begins[i]! < end; i++) {
      if (ends[i]! > begin) this.#search(inside[i], starts[i]!, starts[i + 1]!, box, found);
    }
  }

  /** Tells the boxes of a part of the order apart, if they are many and some dimension does. */
  #build(from: number, to: number, dimensions: readonly number[]): Level | undefined {
    const level = to - from > LEAF ? this.#bestLevel(from, to, dimensions) : undefined;
    if (to - from > 1 && (!level || level.isCrossing))
      for (let i = from; i < to; i++) this.#doubtful.push(this.#order[i]!);
    if (!level) return undefined;
    const others = dimensions.filter((d) => d !== level.dimension);
    for (let i = 0; i < level.begins.length; i++)
      level.inside.push(this.#build(level.starts[i]!, level.starts[i + 1]!, others));
    return level;
  }

  /** By the first dimension whose intervals are disjoint, else the first that has several. */
  #bestLevel(from: number, to: number, dimensions: readonly number[]): Level | undefined {
    let crossing: number | undefined;
    for (const dimension of dimensions) {
      const level = this.#levelOf(dimension, from, to);
      if (level.begins.length < 2) continue;
      if (!level.isCrossing) return level;
      crossing ??= dimension;
    }
    return crossing === undefined ? undefined : this.#levelOf(crossing, from, to);
  }

  #levelOf(dimension: number, from: number, to: number): Level {
    const [boxes, order] = [this.#boxes, this.#order];
    const compare = (a: number, b: number) => {
      const [first, second] = [boxes[a]!, boxes[b]!];
      return first.offset[dimension]! - second.offset[dimension]! || first.size[dimension]! - second.size[dimension]!;
    };
    // Layouts make them in order.
    let sorted = from + 1;
    while (sorted < to && compare(order[sorted - 1]!, order[sorted]!) <= 0) sorted++;
    if (sorted < to) order.subarray(from, to).sort(compare);
    const [begins, ends, reach, starts]: [number[], number[], number[], number[]] = [[], [], [], []];
    let [begin, end, furthest, isCrossing] = [-1, -1, 0, false];
    for (let i = from; i < to; i++) {
      const { offset, size } = boxes[order[i]!]!;
      const [next, length] = [offset[dimension]!, size[dimension]!];
      if (next === begin && next + length === end) continue;
      [begin, end] = [next, next + length];
      isCrossing ||= begin < furthest;
      furthest = Math.max(furthest, end);
      begins.push(begin);
      ends.push(end);
      reach.push(furthest);
      starts.push(i);
    }
    starts.push(to);
    return { dimension, begins, ends, reach, starts, inside: [], isCrossing };
  }
}

/** The first position in ascending values that is above the bound. */
function firstAbove(ascending: readonly number[], bound: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}
