/** Which rank computes for which whole parameter. */
import type { MeshAxis, Placement } from "../tensor/placement";
import type { Tensor } from "../tensor/tensor";
import { type Shape, sizeOf } from "../values/shape";

/** Of products of a matrix with itself. */
const costOf = (shape: Shape) => sizeOf(shape) * Math.min(...shape.slice(-2), sizeOf(shape));

/** An owner for each shape, the same on all ranks: the most expensive first, each to the rank with the least so far. */
export function ownersOf(shapes: readonly Shape[], ranks: number): number[] {
  return shared(shapes, new Array<number>(ranks).fill(0));
}

/** @param loads what each rank has by now; the costs of these shapes are added */
function shared(shapes: readonly Shape[], loads: number[]): number[] {
  const costs = shapes.map(costOf);
  const order = costs.map((_, i) => i).sort((a, b) => costs[b]! - costs[a]! || a - b);
  const owners = new Array<number>(shapes.length);
  for (const i of order) {
    const owner = loads.indexOf(Math.min(...loads));
    loads[owner]! += costs[i]!;
    owners[i] = owner;
  }
  return owners;
}

/** The rank that has a whole tensor: its index along the axis of each cut. */
export type Owner = readonly number[];

/** Gives divided tensors an owner each, as evenly as those before them allow. */
export class Owners {
  readonly #loads: { readonly axes: readonly MeshAxis<Tensor>[]; readonly loads: number[] }[] = [];

  /** An owner for each of these placements; null for what every rank has whole. */
  of(placements: readonly (Placement<Tensor> | null)[]): (Owner | null)[] {
    const owners = new Array<Owner | null>(placements.length).fill(null);
    const lists = new Map<number[], number[]>();
    placements.forEach((placement, i) => {
      if (placement === null) return;
      const loads = this.#loadsOf(placement);
      lists.set(loads, [...(lists.get(loads) ?? []), i]);
    });
    for (const [loads, list] of lists) {
      const shapes = list.map((i) => placements[i]!.shape);
      shared(shapes, loads).forEach((owner, k) => {
        owners[list[k]!] = alongCuts(placements[list[k]!]!, owner);
      });
    }
    return owners;
  }

  /** Of the ranks that have parts of it. */
  #loadsOf({ cuts }: Placement<Tensor>): number[] {
    const axes = cuts.map(({ axis }) => axis);
    const isOfThese = (known: readonly unknown[]) =>
      known.length === axes.length && known.every((axis, k) => axis === axes[k]);
    const known = this.#loads.find((each) => isOfThese(each.axes));
    if (known !== undefined) return known.loads;
    const loads = new Array<number>(axes.reduce((ranks, { size }) => ranks * size, 1)).fill(0);
    this.#loads.push({ axes, loads });
    return loads;
  }
}

/** The last axis counts fastest. */
function alongCuts({ cuts }: Placement<Tensor>, owner: number): number[] {
  const indices: number[] = [];
  for (const { axis } of cuts.toReversed()) {
    indices.unshift(owner % axis.size);
    owner = Math.floor(owner / axis.size);
  }
  return indices;
}

/** True on the rank that has the whole tensor. */
export const isOwner = (placement: Placement<Tensor> | null, owner: Owner | null): boolean =>
  placement === null || placement.cuts.every(({ axis }, k) => axis.index === owner![k]);
