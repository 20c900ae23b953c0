/** Who writes what: each distinct box once, by the rank that has the least to write so far. */

import { bytesPerElement, type StoredDType } from "../format/dtype";
import { type Box, elementsIn } from "../layout/box";
import {
  entryFor,
  type LaidOutTensor,
  type Layout,
  type Placement,
  placementsOf,
  ranksOf,
  type TensorLayout,
} from "../layout/layout";

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
  const pieces = tensors.flatMap((tensor) => {
    const holders = tensor.holders && new Set(tensor.holders);
    return placements.of(tensor).flatMap(({ box, ranks }) => {
      const held = holders ? ranks.filter((rank) => holders.has(rank)) : ranks;
      return held.length === 0
        ? []
        : [{ tensor, box, ranks: held, bytes: elementsIn(box) * bytesPerElement(tensor.dtype) }];
    });
  });
  // What only one rank holds is settled first; the rest goes, largest first, to who has least.
  const settled = pieces.filter(({ ranks }) => ranks.length === 1);
  for (const { ranks, bytes } of settled) load[ranks[0]!]! += bytes;
  const shared = pieces.filter(({ ranks }) => ranks.length > 1);
  shared.sort((a, b) => b.bytes - a.bytes || (a.tensor.name < b.tensor.name ? -1 : 1));
  const assigned = shared.map(({ tensor, box, ranks, bytes }) => {
    let writer = ranks[0]!;
    for (const rank of ranks) if (load[rank]! < load[writer]!) writer = rank;
    load[writer]! += bytes;
    return { tensor, box, writer, ranks };
  });
  return [...settled.map(({ tensor, box, ranks }) => ({ tensor, box, writer: ranks[0]!, ranks })), ...assigned];
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

/** The order of boxes inside a file: wide elements first, so that every tensor is aligned; then by name and place. */
export function fileOrder(
  a: { tensor: { name: string; dtype: StoredDType }; box: Box },
  b: { tensor: { name: string; dtype: StoredDType }; box: Box },
): number {
  const width = bytesPerElement(b.tensor.dtype) - bytesPerElement(a.tensor.dtype);
  if (width !== 0) return width;
  if (a.tensor.name !== b.tensor.name) return a.tensor.name < b.tensor.name ? -1 : 1;
  for (let d = 0; d < a.box.offset.length; d++) {
    const difference = a.box.offset[d]! - b.box.offset[d]!;
    if (difference !== 0) return difference;
  }
  return 0;
}
