/**
 * Finds the boxes that touch a given one without looking at all of them: along the dimension that tells most boxes apart, boxes are
 * grouped by their interval and the groups sorted; each group is indexed along the other dimensions. On a grid a search is logarithmic.
 */
import { type Box, elementsIn, elementsShared } from "../layout/box";

/** Of so few boxes all are looked at. */
const LEAF = 4;

interface Group {
  readonly begin: number;
  readonly end: number;
  readonly inside: Level;
}

interface Level {
  readonly dimension: number;
  readonly groups: readonly Group[];
  /** The largest end among the groups up to each one: what lets a search start in the middle. */
  readonly reach: readonly number[];
  /** Boxes that are not told apart further. */
  readonly leaf: readonly number[];
}

export class BoxIndex {
  readonly #boxes: readonly Box[];
  readonly #root: Level;

  constructor(boxes: readonly Box[]) {
    this.#boxes = boxes;
    this.#root = build(boxes, [...boxes.keys()], boxes[0]?.offset.map((_, d) => d) ?? []);
  }

  /** The indices, ascending, of the boxes that share an element with `box`. */
  touching(box: Box): number[] {
    if (elementsIn(box) === 0) return [];
    const found: number[] = [];
    this.#search(this.#root, box, found);
    return found.length > 1 ? found.sort((a, b) => a - b) : found;
  }

  /** Two boxes that share an element, or undefined where all are disjoint. */
  overlap(): [number, number] | undefined {
    return this.#overlapIn(this.#root);
  }

  #overlapIn(level: Level): [number, number] | undefined {
    for (let i = 0; i < level.leaf.length; i++) {
      for (let j = i + 1; j < level.leaf.length; j++) {
        const [a, b] = [level.leaf[i]!, level.leaf[j]!];
        if (elementsShared(this.#boxes[a]!, this.#boxes[b]!) > 0) return [a, b];
      }
    }
    for (let i = 0; i < level.groups.length; i++) {
      const group = level.groups[i]!;
      // Only intervals that reach into each other need a look at their boxes one by one.
      const crossing = i > 0 && level.reach[i - 1]! > group.begin;
      const pair = crossing ? this.#overlapAcross(group.inside) : this.#overlapIn(group.inside);
      if (pair) return pair;
    }
    return undefined;
  }

  #overlapAcross(level: Level): [number, number] | undefined {
    for (const id of level.leaf) {
      const other = this.touching(this.#boxes[id]!).find((found) => found !== id);
      if (other !== undefined) return [Math.min(id, other), Math.max(id, other)];
    }
    for (const group of level.groups) {
      const pair = this.#overlapAcross(group.inside);
      if (pair) return pair;
    }
    return undefined;
  }

  #search(level: Level, box: Box, found: number[]): void {
    for (const id of level.leaf) if (elementsShared(this.#boxes[id]!, box) > 0) found.push(id);
    if (level.groups.length === 0) return;
    const begin = box.offset[level.dimension]!;
    const end = begin + box.size[level.dimension]!;
    for (let i = firstAbove(level.reach, begin); i < level.groups.length; i++) {
      const group = level.groups[i]!;
      if (group.begin >= end) break;
      if (group.end > begin) this.#search(group.inside, box, found);
    }
  }
}

function build(boxes: readonly Box[], ids: number[], dimensions: readonly number[]): Level {
  const dimension = ids.length > LEAF ? mostTelling(boxes, ids, dimensions) : undefined;
  if (dimension === undefined) return { dimension: 0, groups: [], reach: [], leaf: ids };
  const others = dimensions.filter((d) => d !== dimension);
  const begin = (id: number) => boxes[id]!.offset[dimension]!;
  const end = (id: number) => boxes[id]!.offset[dimension]! + boxes[id]!.size[dimension]!;
  ids.sort((a, b) => begin(a) - begin(b) || end(a) - end(b));
  const groups: Group[] = [];
  const reach: number[] = [];
  for (let i = 0; i < ids.length; ) {
    const first = ids[i]!;
    let next = i + 1;
    while (next < ids.length && begin(ids[next]!) === begin(first) && end(ids[next]!) === end(first)) next++;
    groups.push({ begin: begin(first), end: end(first), inside: build(boxes, ids.slice(i, next), others) });
    reach.push(Math.max(reach.at(-1) ?? 0, end(first)));
    i = next;
  }
  return { dimension, groups, reach, leaf: [] };
}

function mostTelling(boxes: readonly Box[], ids: readonly number[], dimensions: readonly number[]): number | undefined {
  let best: number | undefined;
  let most = 1;
  for (const d of dimensions) {
    const distinct = new Set<number>();
    for (const id of ids) distinct.add(boxes[id]!.offset[d]!);
    if (distinct.size > most) [best, most] = [d, distinct.size];
  }
  return best;
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
