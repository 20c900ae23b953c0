/** Whole tensors from the parts of all ranks, for computations that look across a tensor. */

import { boxAfter, type MeshAxis, type Placement } from "../tensor/placement";
import type { Tensor } from "../tensor/tensor";
import { byteSize } from "../values/dtype";
import { partOf } from "../values/part-of";
import { sizeOf } from "../values/shape";
import { ownersOf } from "./owners";

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

/**
 * Calls `body` with the whole tensors that this rank owns: each has one owner, balanced by their costs, the same on all ranks. Results
 * have the shapes of the wholes, and every rank gets its part of each.
 */
export function atOwners(
  tensors: readonly Tensor[],
  placements: readonly (Placement<Tensor> | null)[],
  body: (indices: readonly number[], wholes: readonly Tensor[]) => readonly Tensor[],
): Tensor[] {
  const results = new Array<Tensor>(tensors.length);
  const solve = (items: readonly Owned[]): void => {
    const here = items.filter(({ depth }) => depth === 0);
    if (here.length > 0) {
      const made = body(
        here.map(({ i }) => i),
        here.map(({ tensor }) => tensor),
      );
      here.forEach((item, k) => {
        item.result = made[k]!;
      });
    }
    for (const [axis, list] of byAxis(items)) {
      const shapes = list.map(({ placement }) => placement.shape);
      const owners = ownersOf(shapes, axis.size);
      const parts = list.map(({ tensor, placement, depth }, k) => ({
        ...partIn(placement, depth - 1, tensor),
        owner: owners[k]!,
      }));
      const mine = axis.gather(parts).flatMap((whole, k) => {
        if (whole === null) return [];
        return [{ ...list[k]!, tensor: whole, depth: list[k]!.depth - 1, k }];
      });
      solve(mine);
      const wholes = new Array<Tensor | null>(list.length).fill(null);
      for (const { k, result } of mine as (Owned & { k: number })[]) wholes[k] = result!;
      const scattered = axis.scatter(
        parts.map(({ tensor, dim, multiple, owner }, k) => ({
          tensor: wholes[k]!,
          dim,
          multiple,
          owner,
          like: tensor,
        })),
      );
      for (const { tensor, result } of mine) {
        tensor.dispose();
        if (result !== tensor) result!.dispose();
      }
      list.forEach((item, k) => {
        item.result = scattered[k]!;
      });
    }
  };
  const items = tensors.map((tensor, i): Owned => {
    const placement = placements[i]!;
    return {
      i,
      tensor,
      placement: placement!,
      depth: placement?.cuts.length ?? 0,
    };
  });
  solve(items);
  for (const { i, result } of items) results[i] = result!;
  return results;
}

/** A tensor on its way to its owner: `depth` of its cuts are left. */
interface Owned {
  readonly i: number;
  readonly tensor: Tensor;
  readonly placement: Placement<Tensor>;
  readonly depth: number;
  result?: Tensor;
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
