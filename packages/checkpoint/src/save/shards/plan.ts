/** Who writes what: a pure function of the layout and the tensors, so every rank computes the same plan on its own. */

import { bytesPerElement, type StoredDType } from "../../format/dtype";
import type { ShardBox } from "../../format/shard";
import { type Box, byPlace, elementsIn } from "../../layout/box";
import { entryFor, type LaidOutTensor, type Layout, ranksOf, type TensorLayout } from "../../layout/layout";
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

/** By rank, the boxes of its file, in the order of the file. */
export type SavePlan<T extends ShardableTensor = ShardableTensor> = readonly (readonly Assignment<T>[])[];

/** Each distinct box goes to one of its holders, to the one that has least to write so far. Boxes that nobody holds are left out. */
export function planSave<T extends ShardableTensor>(layout: Layout, tensors: readonly T[]): SavePlan<T> {
  const files: Assignment<T>[][] = Array.from({ length: ranksOf(layout) }, () => []);
  const load = files.map(() => 0);
  const laidOut = placementsIn(layout);
  const shared: { one: Assignment<T>; bytes: number }[] = [];
  for (const tensor of [...tensors].sort(tensorOrder)) {
    const holders = tensor.holders && new Set(tensor.holders);
    for (const { box, ranks: all } of tensor.placements ?? laidOut(tensor)) {
      const ranks = holders ? all.filter((rank) => holders.has(rank)) : all;
      const bytes = elementsIn(box) * bytesPerElement(tensor.dtype);
      const [writer] = ranks;
      if (ranks.length > 1) shared.push({ one: { tensor, box, ranks }, bytes });
      else if (writer !== undefined) {
        files[writer]!.push({ tensor, box, ranks });
        load[writer]! += bytes;
      }
    }
  }
  // What only one rank holds is settled by now; the rest goes, largest first, to who has least.
  shared.sort((a, b) => b.bytes - a.bytes || (a.one.tensor.name < b.one.tensor.name ? -1 : 1));
  for (const { one, bytes } of shared) {
    let writer = one.ranks[0]!;
    for (const rank of one.ranks) if (load[rank]! < load[writer]!) writer = rank;
    load[writer]! += bytes;
    files[writer]!.push(one);
  }
  for (const boxes of files) boxes.sort(fileOrder);
  return files;
}

/** What a rank holds and another writes, in the order of the plan. */
export function heldBy<T extends ShardableTensor>(plan: SavePlan<T>, rank: number): Assignment<T>[] {
  return plan.flatMap((boxes, writer) => (writer === rank ? [] : boxes.filter(({ ranks }) => ranks.includes(rank))));
}

/** Tensors of one shape that one entry governs lie alike: a hundred thousand of them share their boxes. */
function placementsIn(layout: Layout): (tensor: LaidOutTensor) => readonly Placement[] {
  const known = new Map<TensorLayout, Map<string, readonly Placement[]>>();
  return (tensor) => {
    const entry = entryFor(layout, tensor);
    const byShape = known.get(entry) ?? new Map<string, readonly Placement[]>();
    known.set(entry, byShape);
    const shape = `${tensor.shape}`;
    const placements = byShape.get(shape) ?? placementsOf(layout, tensor);
    byShape.set(shape, placements);
    return placements;
  };
}

/** The order of tensors inside a file: wide elements first, so that every one is aligned; then by name. */
export function tensorOrder(a: ShardBox["tensor"], b: ShardBox["tensor"]): number {
  const width = bytesPerElement(b.dtype) - bytesPerElement(a.dtype);
  if (width !== 0 || a.name === b.name) return width;
  return a.name < b.name ? -1 : 1;
}

/** The order of boxes inside a file. */
export function fileOrder(a: { tensor: ShardBox["tensor"]; box: Box }, b: typeof a): number {
  return tensorOrder(a.tensor, b.tensor) || byPlace(a.box, b.box);
}
