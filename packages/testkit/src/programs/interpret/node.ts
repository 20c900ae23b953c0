/** Float64 values with gradients of any order, by rules of their own: nothing here is from `@opt/core`. */
import { sizeOf } from "../numbers";
import type { Shape } from "../program";

/** Where a gradient goes on to, and what becomes of it on the way: nodes again, so it has gradients itself. */
interface Edge {
  readonly of: Node;
  pull(gradient: Node): Node;
}

export class Node {
  readonly edges: readonly Edge[];
  /** Of leaves. */
  isTrained = false;

  constructor(
    readonly shape: Shape,
    readonly data: Float64Array,
    edges: readonly Edge[] = [],
  ) {
    this.edges = edges.filter(({ of }) => of.requiresGrad);
  }

  get requiresGrad(): boolean {
    return this.isTrained || this.edges.length > 0;
  }
}

export const filled = (shape: Shape, value: number): Node =>
  new Node(shape, new Float64Array(sizeOf(shape)).fill(value));

/** The same numbers, seen by no gradient. */
export const constant = ({ shape, data }: Pick<Node, "shape" | "data">): Node => new Node(shape, data);

/** The same memory in another shape. */
export const reshaped = (x: Node, shape: Shape): Node =>
  new Node(shape, x.data, [{ of: x, pull: (g) => reshaped(g, x.shape) }]);

/** result[i] = x[places[i]], or 0 where the place is -1. */
export function pick(x: Node, places: ArrayLike<number>, shape: Shape): Node {
  const data = Float64Array.from(places, (place) => (place < 0 ? 0 : x.data[place]!));
  return new Node(shape, data, [{ of: x, pull: (g) => put(g, places, x.shape) }]);
}

/** result[places[i]] += x[i]: the other way round. What rounding loses of long sums is added at the end (Neumaier 1974). */
export function put(x: Node, places: ArrayLike<number>, shape: Shape): Node {
  const data = new Float64Array(sizeOf(shape));
  const lost = new Float64Array(data.length);
  for (let i = 0; i < places.length; i++) {
    const place = places[i]!;
    if (place < 0) continue;
    const [before, added] = [data[place]!, x.data[i]!];
    const total = before + added;
    data[place] = total;
    const error = Math.abs(before) >= Math.abs(added) ? before - total + added : added - total + before;
    if (Number.isFinite(error)) lost[place]! += error;
  }
  for (let i = 0; i < data.length; i++) if (lost[i] !== 0) data[i]! += lost[i]!;
  return new Node(shape, data, [{ of: x, pull: (g) => pick(g, places, x.shape) }]);
}

/** Of equal shapes. */
export const plus = (a: Node, b: Node): Node =>
  new Node(
    a.shape,
    a.data.map((x, i) => x + b.data[i]!),
    [
      { of: a, pull: (g) => g },
      { of: b, pull: (g) => g },
    ],
  );

/** Of equal shapes. */
export const times = (a: Node, b: Node): Node =>
  new Node(
    a.shape,
    a.data.map((x, i) => x * b.data[i]!),
    [
      { of: a, pull: (g) => times(g, b) },
      { of: b, pull: (g) => times(g, a) },
    ],
  );

/** f of each element, and its slope as a node made from x and the result. */
export function unary(x: Node, f: (value: number) => number, slope: (x: Node, result: Node) => Node): Node {
  const result: Node = new Node(x.shape, x.data.map(f), [{ of: x, pull: (g) => times(g, slope(x, result)) }]);
  return result;
}

/** f of each element, whose slope is 0. PyTorch gives zeros where this is part of a gradient, and null where it is not. */
export const flat = (x: Node, f: (value: number) => number): Node =>
  new Node(x.shape, x.data.map(f), [{ of: x, pull: () => filled(x.shape, 0) }]);

/** The gradients of an output by some nodes; null for those that it was not computed from. `seen` is told of all on the way. */
export function gradients(
  output: Node,
  seed: Node,
  by: readonly Node[],
  seen: (gradient: Node) => void = () => undefined,
): (Node | null)[] {
  const found = new Map<Node, Node>([[output, seed]]);
  for (const node of inReverse(output)) {
    const gradient = found.get(node);
    if (gradient === undefined) continue;
    for (const { of, pull } of node.edges) {
      const more = pull(gradient);
      seen(more);
      const before = found.get(of);
      found.set(of, before === undefined ? more : plus(before, more));
    }
  }
  return by.map((node) => found.get(node) ?? null);
}

/** Each node before those that it was computed from. */
function inReverse(output: Node): Node[] {
  const order: Node[] = [];
  const seen = new Set<Node>();
  const visit = (node: Node) => {
    if (seen.has(node)) return;
    seen.add(node);
    for (const { of } of node.edges) visit(of);
    order.push(node);
  };
  visit(output);
  return order.reverse();
}
