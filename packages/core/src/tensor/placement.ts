/** What a tensor knows of the ranks that have its other parts, without knowing tensors. Core has the interface, `@opt/parallel` the ranks. */

import { partOf } from "../values/part-of";
import { type Shape, sizeOf } from "../values/shape";

/** One axis of a mesh of ranks, as this rank sees it. All its ranks make the same calls in the same order; a compiled function makes them in each run. */
export interface MeshAxis<Tensor> {
  readonly name: string;
  readonly size: number;
  /** Which of them this rank is. */
  readonly index: number;
  /** All ranks' parts joined. A part with an owner comes to that rank alone; the others get null. The results are the caller's. */
  gather(parts: readonly AxisPart<Tensor>[]): (Tensor | null)[];
  /** The inverse: this rank's part of each whole, which its owner gives and the others pass as null. The results are the caller's. */
  scatter(wholes: readonly AxisWhole<Tensor>[]): Tensor[];
}

/** What `gather` joins. */
export interface AxisPart<Tensor> {
  readonly tensor: Tensor;
  readonly dim: number;
  /** The extent of all parts together. */
  readonly length: number;
  /** As a cut's. */
  readonly multiple?: number;
  readonly owner?: number;
}

/** What `scatter` cuts. */
export interface AxisWhole<Tensor> {
  readonly tensor: Tensor | null;
  readonly dim: number;
  /** As a cut's. */
  readonly multiple?: number;
  readonly owner: number;
  /** What each rank gets has this shape, but for the extent of `dim`. */
  readonly like: Tensor;
}

/** A cut along a dimension of what outer cuts left. */
export interface PlacementCut<Tensor> {
  readonly axis: MeshAxis<Tensor>;
  readonly dim: number;
  /** Parts begin at multiples of so many rows. Default 1. */
  readonly multiple?: number;
}

/** Which part of a whole tensor a rank has: nested cuts, outermost first, uneven parts as `split` gives them. */
export interface Placement<Tensor> {
  /** Of the whole. */
  readonly shape: Shape;
  readonly cuts: readonly PlacementCut<Tensor>[];
}

/** What the first `count` cuts leave of the whole. */
export function boxAfter(
  { shape, cuts }: Placement<unknown>,
  count = cuts.length,
): { readonly offset: number[]; readonly size: number[] } {
  const [offset, size] = [shape.map(() => 0), [...shape]];
  for (const { axis, dim, multiple } of cuts.slice(0, count)) {
    const [begin, end] = partOf(size[dim]!, axis.size, axis.index, multiple);
    offset[dim]! += begin;
    size[dim] = end - begin;
  }
  return { offset, size };
}

/** How many elements of the whole come before a part of its rows. Parts that are cut along other dimensions have gaps: 0. */
export function elementsBefore(placement: Placement<unknown>): number {
  const { shape, cuts } = placement;
  if (cuts.some(({ dim }) => dim !== 0)) return 0;
  return (boxAfter(placement).offset[0] ?? 0) * sizeOf(shape.slice(1));
}
