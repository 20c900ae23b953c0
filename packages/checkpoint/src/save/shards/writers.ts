/** Who writes what: each distinct box once, by the rank that has the least to write so far. */

import { bytesPerElement, type StoredDType } from "../../format/dtype";
import type { ShardBox } from "../../format/shard";
import { type Box, byPlace, elementsIn } from "../../layout/box";
import {
  entryFor,
  type LaidOutTensor,
  type Layout,
  type Placement,
  placementsOf,
  ranksOf,
  type TensorLayout,
} from "../../layout/layout";

export interface ShardableTensor extends LaidOutTensor {
  readonly dtype: StoredDType;
  /** The ranks that have this tensor at all; without it, every one. */
  readonly holders?: readonly number[];
}

export interface Assignment<T extends ShardableTensor = ShardableTensor> {
  readonly tensor: T;
  readonly box: Box;
  readonly writer: number;
  /** Everyone who holds the box, the writer included. */
  readonly ranks: readonly number[];
}

/** Every rank computes the same answer on its own. Boxes that no holder has are left out. */
export function assignWriters<T extends ShardableTensor>(layout: Layout, tensors: readonly T[]): Assignment<T>[] {
  const load = new Array<number>(ranksOf(layout)).fill(0);
  const placements = new PlacementsOf(layout);
  const assigned: Assignment<T>[] = [];
  const shared: { tensor: T; box: Box; ranks: readonly number[]; bytes: number }[] = [];
  for (const tensor of [...tensors].sort(tensorOrder)) {
    const holders = tensor.holders && new Set(tensor.holders);
    for (const { box, ranks: all } of placements.of(tensor)) {
      const ranks = holders ? all.filter((rank) => holders.has(rank)) : all;
      const bytes = elementsIn(box) * bytesPerElement(tensor.dtype);
      const [writer] = ranks;
      if (ranks.length > 1) shared.push({ tensor, box, ranks, bytes });
      else if (writer !== undefined) {
        assigned.push({ tensor, box, writer, ranks });
        load[writer]! += bytes;
      }
    }
  }
  // What only one rank holds is settled by now; the rest goes, largest first, to who has least.
  shared.sort((a, b) => b.bytes - a.bytes || (a.tensor.name < b.tensor.name ? -1 : 1));
  for (const { tensor, box, ranks, bytes } of shared) {
    let writer = ranks[0]!;
    for (const rank of ranks) if (load[rank]! < load[writer]!) writer = rank;
    load[writer]! += bytes;
    assigned.push({ tensor, box, writer, ranks });
  }
  return assigned;
}

/** Tensors of one shape that one entry governs lie alike: a hundred thousand of them share their boxes. */
class PlacementsOf {
  readonly #layout: Layout;
  readonly #known = new Map<TensorLayout, Map<string, readonly Placement[]>>();

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  of(tensor: LaidOutTensor): readonly Placement[] {
    const entry = entryFor(this.#layout, tensor);
    const byShape = this.#known.get(entry) ?? new Map<string, readonly Placement[]>();
    this.#known.set(entry, byShape);
    const shape = `${tensor.shape}`;
    const known = byShape.get(shape) ?? placementsOf(this.#layout, tensor);
    byShape.set(shape, known);
    return known;
  }
}

/** The order of tensors inside a file: wide elements first, so that every one is aligned; then by name. */
export function tensorOrder(a: ShardBox["tensor"], b: ShardBox["tensor"]): number {
  const width = bytesPerElement(b.dtype) - bytesPerElement(a.dtype);
  if (width !== 0 || a.name === b.name) return width;
  return a.name < b.name ? -1 : 1;
}

/** The order of boxes inside a file. */
export function fileOrder(a: ShardBox, b: ShardBox): number {
  return tensorOrder(a.tensor, b.tensor) || byPlace(a.box, b.box);
}
