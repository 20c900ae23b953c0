/** Which rank computes for which whole parameter. */
import { type Shape, sizeOf } from "../values/shape";

/** Of products of a matrix with itself. */
const costOf = (shape: Shape) => sizeOf(shape) * Math.min(...shape.slice(-2), sizeOf(shape));

/** An owner for each shape, the same on all ranks: the most expensive first, each to the rank with the least so far. */
export function ownersOf(shapes: readonly Shape[], ranks: number): number[] {
  const costs = shapes.map(costOf);
  const order = costs.map((_, i) => i).sort((a, b) => costs[b]! - costs[a]! || a - b);
  const loads = new Array<number>(ranks).fill(0);
  const owners = new Array<number>(shapes.length);
  for (const i of order) {
    const owner = loads.indexOf(Math.min(...loads));
    loads[owner]! += costs[i]!;
    owners[i] = owner;
  }
  return owners;
}
