/** Which boxes of a tensor each rank of a layout holds, and the whole shape that ranks hold slices of. */
import { OptError } from "@opt/core";
import { type Box, describeBox, elementsIn, fits, wholeOf } from "./box";
import {
  boxOf,
  coordinatesOf,
  cutOf,
  entryFor,
  type LaidOutTensor,
  type Layout,
  ranksOf,
  reject,
  type TensorLayout,
} from "./layout";

/** A box and the ranks, ascending, that hold it. */
export interface Placement {
  readonly box: Box;
  readonly ranks: readonly number[];
}

function explicitBoxes(layout: Layout, tensor: LaidOutTensor, boxes: readonly (readonly Box[])[]) {
  const title = `tensor ${JSON.stringify(tensor.name)}`;
  const ranks = ranksOf(layout);
  if (boxes.length !== ranks)
    reject(`${title}: boxes must have ${ranks} lists, one per rank, got ${boxes.length}.`, "Add them.");
  const outside = boxes.flat().find((box) => !fits(box, tensor.shape));
  if (outside) reject(`${title}: box ${describeBox(outside)} leaves the shape [${tensor.shape}].`, "Fix the box.");
  return boxes;
}

/** The boxes of a tensor that one rank holds, empty ones included. */
export function boxesOfRank(layout: Layout, tensor: LaidOutTensor, rank: number): readonly Box[] {
  const entry = entryFor(layout, tensor);
  if (typeof entry === "object" && "boxes" in entry) return explicitBoxes(layout, tensor, entry.boxes)[rank]!;
  const cut = cutOf(layout, tensor, entry);
  return [boxOf(cut, cut.partsOfRank(rank))];
}

/** Every box of a tensor that holds an element, once, in row-major order. A tensor of no elements is one empty box. */
export function boxesOf(layout: Layout, tensor: LaidOutTensor): Box[] {
  const entry = entryFor(layout, tensor);
  if (typeof entry === "object" && "boxes" in entry) return placementsOf(layout, tensor).map(({ box }) => box);
  if (elementsIn({ offset: [], size: tensor.shape }) === 0) return [wholeOf(tensor.shape)];
  const cut = cutOf(layout, tensor, entry);
  const intervals = tensor.shape.map((_, d) => {
    const all = Array.from({ length: cut.parts[d]! }, (_, part) => cut.begin(d, part));
    return all.filter(([begin, end]) => end > begin);
  });
  const lengths = intervals.map(({ length }) => length);
  const count = lengths.reduce((product, length) => product * length, 1);
  const boxes: Box[] = [];
  for (let index = 0; index < count; index++) {
    const offset = coordinatesOf(index, lengths);
    const size = new Array<number>(offset.length);
    for (let d = 0; d < size.length; d++) {
      const interval = intervals[d]![offset[d]!]!;
      offset[d] = interval[0];
      size[d] = interval[1] - interval[0];
    }
    boxes.push({ offset, size });
  }
  return boxes;
}

/** The boxes of `boxesOf`, each with the ranks that hold it. */
export function placementsOf(layout: Layout, tensor: LaidOutTensor): Placement[] {
  const ranks = ranksOf(layout);
  if (elementsIn({ offset: [], size: tensor.shape }) === 0) {
    return [{ box: wholeOf(tensor.shape), ranks: Array.from({ length: ranks }, (_, rank) => rank) }];
  }
  return placementsGiven(Array.from({ length: ranks }, (_, rank) => [rank, boxesOfRank(layout, tensor, rank)]));
}

/** Each box that holds an element once, with the ranks that hold it. */
export function placementsGiven(held: Iterable<readonly [rank: number, boxes: readonly Box[]]>): Placement[] {
  const placed = new Map<string, { box: Box; ranks: number[] }>();
  for (const [rank, boxes] of held) {
    for (const box of boxes) {
      if (elementsIn(box) === 0) continue;
      const key = describeBox(box);
      const known = placed.get(key);
      if (known) known.ranks.push(rank);
      else placed.set(key, { box, ranks: [rank] });
    }
  }
  return [...placed.values()];
}

/**
 * The whole tensor's shape, from the slices that ranks hold (`local`).
 *
 * @throws OptError BAD_SHAPE if the slices do not fit each other
 */
export function wholeShape(
  layout: Layout,
  tensor: { name: string; follows?: string; rank: number },
  local: (rank: number) => readonly number[] | undefined,
): number[] {
  const entry = entryFor(layout, tensor);
  const fail = (problem: string): never => {
    const advice = "Check the slices and the layout.";
    throw new OptError("BAD_SHAPE", `tensor ${JSON.stringify(tensor.name)}`, problem, advice);
  };
  if (typeof entry === "object" && "boxes" in entry) {
    const boxes = entry.boxes.flat();
    return Array.from({ length: tensor.rank }, (_, d) =>
      boxes.reduce((most, box) => Math.max(most, box.offset[d]! + box.size[d]!), 0),
    );
  }
  const cut = cutOf(layout, { ...tensor, shape: new Array(tensor.rank).fill(0) }, withoutSizes(entry));
  const lengths = cut.parts.map((parts) => new Array<number | undefined>(parts));
  for (let rank = 0; rank < ranksOf(layout); rank++) {
    const slice = local(rank);
    if (!slice) continue;
    cut.partsOfRank(rank).forEach((part, d) => {
      const known = lengths[d]![part];
      if (known !== undefined && known !== slice[d]) {
        fail(`rank ${rank} holds [${slice}], but another rank's same part of dimension ${d} has length ${known}.`);
      }
      lengths[d]![part] = slice[d]!;
    });
  }
  return lengths.map((parts, d) => {
    let total = 0;
    for (let part = 0; part < parts.length; part++) {
      total += parts[part] ?? fail(`no rank holds part ${part} of ${parts.length} of dimension ${d}.`);
    }
    return total;
  });
}

function withoutSizes(entry: Exclude<TensorLayout, { boxes: unknown }>): Exclude<TensorLayout, { boxes: unknown }> {
  return typeof entry === "object" && "split" in entry ? { split: entry.split } : entry;
}
