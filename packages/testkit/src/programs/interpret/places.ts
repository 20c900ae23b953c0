/** Where the elements of one shape are in another: row-major places, as `pick` and `put` take them. */
import { sizeOf } from "../numbers";
import { broadcast } from "../op-kind";
import type { Shape } from "../program";
import { type Node, pick, put } from "./node";

/** Thrown where a program must be rejected: no shape or value is right. */
export class Rejected extends Error {}

export function mustHold(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new Rejected(rule);
}

export const stridesOf = (shape: Shape): number[] => shape.map((_, i) => sizeOf(shape.slice(i + 1)));

/** For each place in a shape, in row-major order, what `at` makes of its indices. */
export function eachPlace(shape: Shape, at: (indices: number[]) => number): Int32Array {
  const places = new Int32Array(sizeOf(shape));
  const indices = shape.map(() => 0);
  for (let i = 0; i < places.length; i++) {
    places[i] = at(indices);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      if (++indices[axis]! < shape[axis]!) break;
      indices[axis] = 0;
    }
  }
  return places;
}

const flatOf = (indices: readonly number[], strides: readonly number[]): number =>
  strides.reduce((total, stride, axis) => total + stride * indices[axis]!, 0);

/** A node of another shape: `from` gives the indices in x for indices of the result, or null for a zero. */
export function moved(x: Node, shape: Shape, from: (indices: number[]) => readonly number[] | null): Node {
  const strides = stridesOf(x.shape);
  return pick(
    x,
    eachPlace(shape, (indices) => {
      const own = from(indices);
      return own === null ? -1 : flatOf(own, strides);
    }),
    shape,
  );
}

/** A sum over what comes to the same place: `to` gives the indices in the result for indices in x. */
export function gathered(x: Node, shape: Shape, to: (indices: number[]) => readonly number[]): Node {
  const strides = stridesOf(shape);
  return put(
    x,
    eachPlace(x.shape, (indices) => flatOf(to(indices), strides)),
    shape,
  );
}

/** The node stretched to a shape. */
export function stretched(x: Node, shape: Shape): Node {
  if (String(x.shape) === String(shape) && x.shape.length === shape.length) return x;
  const missing = shape.length - x.shape.length;
  return moved(x, shape, (indices) => x.shape.map((extent, axis) => (extent === 1 ? 0 : indices[axis + missing]!)));
}

/** Nodes stretched to the shape that they have together. */
export function together(...nodes: readonly Node[]): Node[] {
  const shape = broadcast(nodes.map((node) => node.shape));
  mustHold(shape !== null, `shapes must fit, got ${nodes.map((node) => `[${node.shape}]`).join(", ")}`);
  return nodes.map((node) => stretched(node, shape));
}

/** An axis counted from the front. */
export function axisOf(shape: Shape, axis: number, rank = shape.length): number {
  const own = axis < 0 ? axis + rank : axis;
  mustHold(Number.isInteger(own) && own >= 0 && own < rank, `axis ${axis} of [${shape}]`);
  return own;
}
