/** Who writes what: a pure function of the layout and the tensors, so every rank computes the same plan on its own. */

import { indicesByValue } from "../../format/division";
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import { fileOrder, tensorOrder } from "../../format/shard";
import { elementsIn } from "../../layout/box";
import { entryFor, type LaidOutTensor, type Layout, ranksOf } from "../../layout/layout";
import { type Placement, placementsOf } from "../../layout/placements";

export interface ShardableTensor extends LaidOutTensor {
  readonly dtype: StoredDType;
  /** The ranks that have this tensor at all; without it, every one. */
  readonly holders?: readonly number[];
  /** The boxes that ranks gave themselves; without them, the layout's. */
  readonly placements?: readonly Placement[];
}

export interface Assignment<T extends ShardableTensor = ShardableTensor> extends Placement {
  readonly tensor: T;
}

/** A tensor's boxes, and the rank that writes each. Tensors that lie alike share both lists. */
export interface Planned<T extends ShardableTensor = ShardableTensor> {
  readonly tensor: T;
  readonly placements: readonly Placement[];
  /** -1 for a box that nobody holds. */
  readonly writers: readonly number[];
}

/** Which rank writes which boxes. It has no entry per box and rank: 4,096 ranks have tens of millions. */
export class SavePlan<T extends ShardableTensor = ShardableTensor> {
  /** Where each rank's boxes are among `writers`. */
  readonly #indices = new Map<readonly number[], Map<number, number[]>>();

  constructor(
    readonly ranks: number,
    /** In the order of files. */
    readonly tensors: readonly Planned<T>[],
  ) {}

  /** The boxes of a rank's file, in its order. */
  boxesOf(rank: number): Assignment<T>[] {
    const boxes: Assignment<T>[] = [];
    for (const { tensor, placements, writers } of this.tensors)
      for (const i of this.#indicesOf(writers).get(rank) ?? []) boxes.push({ tensor, ...placements[i]! });
    return boxes.sort(fileOrder);
  }

  /** What a rank holds and another writes. */
  heldBy(rank: number): (Assignment<T> & { readonly writer: number })[] {
    return this.tensors.flatMap(({ tensor, placements, writers }) =>
      placements.flatMap((placement, i) => {
        const writer = writers[i]!;
        return writer !== rank && placement.ranks.includes(rank) ? [{ tensor, ...placement, writer }] : [];
      }),
    );
  }

  #indicesOf(writers: readonly number[]): Map<number, number[]> {
    const known = this.#indices.get(writers) ?? indicesByValue(writers);
    this.#indices.set(writers, known);
    return known;
  }
}

/**
 * Each distinct box goes to one of its holders, to the one that has least to write so far; a single number goes to the first, so that
 * readers find all of them in one file. Boxes that nobody holds are left out.
 */
export function planSave<T extends ShardableTensor>(layout: Layout, tensors: readonly T[]): SavePlan<T> {
  const ranks = ranksOf(layout);
  const load = new Float64Array(ranks);
  const laidOut = placementsIn(layout);
  const alike = new Map<readonly Placement[], readonly number[]>();
  const planned: Planned<T>[] = [];
  const shared: { readonly one: Planned<T>; readonly index: number; readonly bytes: number }[] = [];
  for (const tensor of [...tensors].sort(tensorOrder)) {
    const holders = tensor.holders && new Set(tensor.holders);
    const all = tensor.placements ?? laidOut(tensor);
    const placements = holders ? all.map((one) => ({ ...one, ranks: one.ranks.filter((r) => holders.has(r)) })) : all;
    const isMoved = ({ box, ranks }: Placement) => ranks.length > 1 && elementsIn(box) > 1;
    const first = () => placements.map(({ ranks }) => ranks[0] ?? -1);
    const isSettled = !placements.some(isMoved);
    const writers = (isSettled ? alike.get(placements) : undefined) ?? first();
    if (isSettled) alike.set(placements, writers);
    const one = { tensor, placements, writers };
    planned.push(one);
    for (const [index, placement] of placements.entries()) {
      const bytes = elementsIn(placement.box) * bytesPerElement(tensor.dtype);
      if (isMoved(placement)) shared.push({ one, index, bytes });
      else if (writers[index]! >= 0) load[writers[index]!]! += bytes;
    }
  }
  // What only one rank holds is settled by now; the rest goes, largest first, to who has least.
  shared.sort((a, b) => b.bytes - a.bytes || (a.one.tensor.name < b.one.tensor.name ? -1 : 1));
  for (const { one, index, bytes } of shared) {
    const { ranks } = one.placements[index]!;
    let writer = ranks[0]!;
    for (const rank of ranks) if (load[rank]! < load[writer]!) writer = rank;
    load[writer]! += bytes;
    (one.writers as number[])[index] = writer;
  }
  return new SavePlan(ranks, planned);
}

/** Tensors of one shape that equal entries cut lie alike: a hundred thousand of them share their boxes. */
function placementsIn(layout: Layout): (tensor: LaidOutTensor) => readonly Placement[] {
  const known = new Map<string, readonly Placement[]>();
  return (tensor) => {
    const entry = entryFor(layout, tensor);
    if (typeof entry === "object" && "boxes" in entry) return placementsOf(layout, tensor);
    const key = JSON.stringify([entry, tensor.shape]);
    const placements = known.get(key) ?? placementsOf(layout, tensor);
    known.set(key, placements);
    return placements;
  };
}
