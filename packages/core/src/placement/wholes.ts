/** Whole tensors from the parts of all ranks, for computations that look across a tensor. */

import { type AxisPart, boxAfter, type MeshAxis, type Placement } from "../tensor/placement";
import type { Tensor } from "../tensor/tensor";
import { byteSize } from "../values/dtype";
import { partOf } from "../values/part-of";
import { sizeOf } from "../values/shape";
import type { Owner } from "./owners";

/** So many bytes of whole tensors are gathered at a time. */
const AT_ONCE = 1 << 26;

/**
 * Calls `body` with whole tensors in the place of parts, about 64 MiB of them at a time, and frees what was gathered. What is whole
 * already comes as it is, so that one rank has one call with all.
 *
 * @param body gets positions in the lists, and the whole tensors
 */
export function inWholes<Result>(
  tensors: readonly Tensor[],
  placements: readonly (Placement<Tensor> | null)[],
  body: (indices: readonly number[], wholes: readonly Tensor[]) => Result,
): Result[] {
  return batchesOf(tensors, placements).map((indices) => {
    const wholes = wholesOf(pick(tensors, indices), pick(placements, indices));
    const result = body(indices, wholes);
    wholes.forEach((whole, k) => {
      if (placements[indices[k]!]) whole.dispose();
    });
    return result;
  });
}

/** Parts of one whole shape, which go to its owner. */
export interface Owned {
  /** Null for what every rank has whole. */
  readonly placement: Placement<Tensor> | null;
  readonly owner: Owner | null;
  /** Those whose results come back. */
  readonly written: readonly Tensor[];
  readonly read: readonly Tensor[];
}

/**
 * Calls `body` with the whole tensors that this rank owns, and with those that every rank has. It returns a result for each that is
 * `written`, in its shape and dtype. Every rank gets its part of each result.
 *
 * @param body gets positions in the list, and for each the whole tensors: first those that are written
 */
export function atOwners(
  items: readonly Owned[],
  body: (indices: readonly number[], wholes: readonly (readonly Tensor[])[]) => readonly (readonly Tensor[])[],
): (readonly Tensor[])[] {
  const held: (readonly Tensor[] | null)[] = items.map(({ written, read }) => [...written, ...read]);
  const exchanges: { axis: MeshAxis<Tensor>; list: readonly Level[]; parts: (readonly AxisPart<Tensor>[])[] }[] = [];
  let open = items.flatMap(({ placement }, i) => (placement ? [{ i, placement, depth: placement.cuts.length }] : []));
  while (open.length > 0) {
    for (const [axis, list] of byAxis(open)) {
      const parts = list.map(({ i, placement, depth }) =>
        held[i]!.map((tensor) => ({ ...partIn(placement, depth - 1, tensor), owner: items[i]!.owner![depth - 1]! })),
      );
      const wholes = axis.gather(parts.flat());
      for (const [k, { i }] of list.entries()) {
        const own = wholes.splice(0, parts[k]!.length);
        held[i] = own.every((whole) => whole !== null) ? own : null;
      }
      exchanges.push({ axis, list, parts });
    }
    open = open.flatMap(({ i, placement, depth }) =>
      held[i] === null || depth === 1 ? [] : [{ i, placement, depth: depth - 1 }],
    );
  }
  const here = items.flatMap((_, i) => (held[i] === null ? [] : [i]));
  const made =
    here.length > 0
      ? body(
          here,
          here.map((i) => held[i]!),
        )
      : [];
  const results: (readonly Tensor[] | null)[] = items.map(() => null);
  here.forEach((i, k) => {
    results[i] = made[k]!;
  });
  for (const { axis, list, parts } of exchanges.reverse()) {
    const wholes = list.flatMap(({ i }, k) =>
      items[i]!.written.map((_, w) => {
        const { tensor: like, dim, multiple, owner } = parts[k]![w]!;
        return { tensor: results[i]?.[w] ?? null, dim, multiple, owner: owner!, like };
      }),
    );
    const scattered = axis.scatter(wholes);
    for (const { tensor } of wholes) tensor?.dispose();
    for (const [k, { i, depth, placement }] of list.entries()) {
      results[i] = scattered.splice(0, items[i]!.written.length);
      // What came of cuts farther in.
      if (depth < placement.cuts.length) for (const { tensor } of parts[k]!) tensor.dispose();
    }
  }
  here.forEach((i) => {
    if (items[i]!.placement) for (const whole of held[i]!) whole.dispose();
  });
  return results as (readonly Tensor[])[];
}

/** A tensor on its way to its owner: `depth` of its cuts are left. */
interface Level {
  readonly i: number;
  readonly placement: Placement<Tensor>;
  readonly depth: number;
}

/** Copies of this rank's parts of whole tensors that every rank has; what has no placement stays itself. */
export function partsOfWholes(wholes: readonly Tensor[], placements: readonly (Placement<Tensor> | null)[]): Tensor[] {
  return wholes.map((whole, i) => {
    const placement = placements[i]!;
    if (placement === null) return whole;
    return placement.cuts.reduce((rest, { axis, dim, multiple }) => {
      const [begin, end] = partOf(rest.shape[dim]!, axis.size, axis.index, multiple);
      const part = rest.slice(begin, end, dim);
      if (rest !== whole) rest.dispose();
      return part;
    }, whole);
  });
}

/** Positions whose whole tensors take about `AT_ONCE` bytes together; those that are whole already cost nothing. */
function batchesOf(tensors: readonly Tensor[], placements: readonly (Placement<Tensor> | null)[]): number[][] {
  const batches: number[][] = [[]];
  let bytes = 0;
  tensors.forEach(({ dtype }, i) => {
    const placement = placements[i]!;
    const own = placement === null ? 0 : sizeOf(placement.shape) * byteSize(dtype);
    if (bytes > 0 && bytes + own > AT_ONCE) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)!.push(i);
    bytes += own;
  });
  return batches;
}

/** Whole tensors on every rank, which are the caller's; what has no placement stays itself. Cuts are joined from the innermost on, those of one axis in one exchange. */
export function wholesOf(tensors: readonly Tensor[], placements: readonly (Placement<Tensor> | null)[]): Tensor[] {
  const wholes = [...tensors];
  let items = placements.flatMap((placement, i) => {
    const depth = placement?.cuts.length ?? 0;
    return depth === 0 ? [] : [{ i, placement: placement!, depth }];
  });
  while (items.length > 0) {
    for (const [axis, list] of byAxis(items)) {
      const parts = list.map(({ i, placement, depth }) => partIn(placement, depth - 1, wholes[i]!));
      axis.gather(parts).forEach((joined, k) => {
        const { i } = list[k]!;
        if (wholes[i] !== tensors[i]) wholes[i]!.dispose();
        wholes[i] = joined!;
      });
    }
    items = items.flatMap(({ i, placement, depth }) => {
      return depth === 1 ? [] : [{ i, placement, depth: depth - 1 }];
    });
  }
  return wholes;
}

/** The part that a cut left, for an axis to join. */
function partIn(placement: Placement<Tensor>, level: number, tensor: Tensor) {
  const { dim, multiple } = placement.cuts[level]!;
  return { tensor, dim, multiple, length: boxAfter(placement, level).size[dim]! };
}

/** By the axis of their innermost cut, in the order of the list. */
function byAxis<Item extends { readonly placement: Placement<Tensor>; readonly depth: number }>(
  items: readonly Item[],
): Map<MeshAxis<Tensor>, Item[]> {
  const lists = new Map<MeshAxis<Tensor>, Item[]>();
  for (const item of items) {
    if (item.depth === 0) continue;
    const { axis } = item.placement.cuts[item.depth - 1]!;
    const list = lists.get(axis);
    if (list) list.push(item);
    else lists.set(axis, [item]);
  }
  return lists;
}

const pick = <Item>(list: readonly Item[], indices: readonly number[]) => indices.map((i) => list[i]!);
