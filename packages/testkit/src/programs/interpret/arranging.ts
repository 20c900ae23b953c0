/** Ops that give elements other places. */
import { sizeOf } from "../numbers";
import type { Shape } from "../program";
import { asNode, type Interpretation } from "./elementwise";
import { constant, filled, type Node, pick, plus, put, reshaped } from "./node";
import { axisOf, eachPlace, moved, mustHold, stretched, stridesOf } from "./places";

const bound = (at: number, extent: number): number => Math.min(Math.max(at < 0 ? at + extent : at, 0), extent);

export function reshape(x: Node, shape: Shape): Node {
  mustHold(sizeOf(shape) === sizeOf(x.shape), `[${x.shape}] has no shape [${shape}]`);
  return reshaped(x, shape);
}

export function slice(x: Node, start: number, end: number, axis: number): Node {
  const own = axisOf(x.shape, axis);
  const [from, to] = [bound(start, x.shape[own]!), bound(end, x.shape[own]!)];
  const shape = x.shape.with(own, Math.max(to - from, 0));
  return moved(x, shape, (indices) => indices.map((index, i) => (i === own ? index + from : index)));
}

export function permute(x: Node, axes: readonly number[]): Node {
  mustHold(String([...axes].sort()) === String(x.shape.map((_, i) => i)), `axes ${axes} of [${x.shape}]`);
  return moved(
    x,
    axes.map((axis) => x.shape[axis]!),
    (indices) => x.shape.map((_, i) => indices[axes.indexOf(i)]!),
  );
}

export function transpose(x: Node): Node {
  mustHold(x.shape.length >= 2, `a matrix, got [${x.shape}]`);
  const axes = x.shape.map((_, i) => i);
  return permute(x, [...axes.slice(0, -2), axes.at(-1)!, axes.at(-2)!]);
}

/** Nodes one after the other: each has the rank and, but for the axis, the shape of the first. */
export function concat(list: readonly Node[], axis: number): Node {
  const own = axisOf(list[0]!.shape, axis);
  const rest = (shape: Shape) => `${shape.length}: ${shape.toSpliced(own, 1)}`;
  mustHold(
    list.every(({ shape }) => rest(shape) === rest(list[0]!.shape)),
    `shapes of one rank that differ in axis ${axis}, got ${list.map(({ shape }) => `[${shape}]`).join(", ")}`,
  );
  const total = list.reduce((sum, { shape }) => sum + shape[own]!, 0);
  const shape = list[0]!.shape.with(own, total);
  const strides = stridesOf(shape);
  let begin = 0;
  let result = filled(shape, 0);
  for (const x of list) {
    const from = begin;
    const place = (indices: number[]) =>
      indices.reduce((sum, index, i) => sum + strides[i]! * (i === own ? index + from : index), 0);
    result = plus(result, put(x, eachPlace(x.shape, place), shape));
    begin += x.shape[own]!;
  }
  return result;
}

export function flip(x: Node, axis: number): Node {
  const own = axisOf(x.shape, axis);
  return moved(x, x.shape, (at) => at.with(own, x.shape[own]! - 1 - at[own]!));
}

export const unsqueeze = (x: Node, axis: number): Node =>
  reshaped(x, x.shape.toSpliced(axisOf(x.shape, axis, x.shape.length + 1), 0, 1));

function expand(x: Node, shape: Shape): Node {
  const missing = shape.length - x.shape.length;
  const fits = x.shape.every((extent, i) => extent === 1 || extent === shape[i + missing]);
  mustHold(missing >= 0 && fits, `[${x.shape}] is not stretched to [${shape}]`);
  return stretched(x, shape);
}

export function pad(x: Node, sides: readonly number[], value: number): Node {
  const of = (axis: number, side: number) => sides[2 * (x.shape.length - 1 - axis) + side] ?? 0;
  const shape = x.shape.map((extent, axis) => extent + of(axis, 0) + of(axis, 1));
  const isInside = (indices: readonly number[]) =>
    indices.every((index, axis) => index >= of(axis, 0) && index - of(axis, 0) < x.shape[axis]!);
  const inner = moved(x, shape, (indices) => (isInside(indices) ? indices.map((i, axis) => i - of(axis, 0)) : null));
  const outer = eachPlace(shape, (indices) => (isInside(indices) ? -1 : 0));
  return plus(inner, pick(filled([], value), outer, shape));
}

const triangle = (isKept: (row: number, column: number) => boolean, x: Node): Node => {
  mustHold(x.shape.length >= 2, `a matrix, got [${x.shape}]`);
  return moved(x, x.shape, (indices) => (isKept(indices.at(-2)!, indices.at(-1)!) ? indices : null));
};

/** Rows of a table: indices count from its start. */
export function gather(table: Node, indices: Node): Node {
  mustHold(table.shape.length > 0, "a table");
  const [rows, ...rest] = table.shape as [number, ...number[]];
  mustHold(
    indices.data.every((index) => index >= 0 && index < rows),
    `indices below ${rows}`,
  );
  const row = sizeOf(rest);
  const places = Array.from(indices.data, (index) => Array.from({ length: row }, (_, i) => index * row + i)).flat();
  return pick(table, places, [...indices.shape, ...rest]);
}

function gatherAlong(x: Node, indices: Node, axis: number): Node {
  // A tensor without axes counts as one of a single element.
  if (x.shape.length === 0) return gatherAlong(reshaped(x, [1]), indices, axis);
  if (indices.shape.length === 0) return reshaped(gatherAlong(x, reshaped(indices, [1]), axis), []);
  const own = axisOf(x.shape, axis);
  const fits = indices.shape.every((extent, i) => i === own || extent <= x.shape[i]!);
  mustHold(indices.shape.length === x.shape.length && fits, `[${indices.shape}] of [${x.shape}]`);
  mustHold(
    indices.data.every((index) => index >= 0 && index < x.shape[own]!),
    "indices in the axis",
  );
  let i = 0;
  return moved(x, indices.shape, (at) => at.with(own, indices.data[i++]!));
}

export const ARRANGING: Readonly<Record<string, Interpretation>> = {
  reshape: ([x], { shape }) => reshape(asNode(x!), shape as Shape),
  slice: ([x], { start, end, axis }) => slice(asNode(x!), start as number, end as number, axis as number),
  permute: ([x], { axes }) => permute(asNode(x!), axes as number[]),
  transpose: ([x]) => transpose(asNode(x!)),
  concat: (list, { axis }) => concat(list.map(asNode), axis as number),
  stack: (list, { axis }) => {
    const nodes = list.map(asNode);
    const shapes = new Set(nodes.map((x) => String([x.shape.length, ...x.shape])));
    mustHold(shapes.size === 1, "equal shapes");
    return concat(
      nodes.map((x) => unsqueeze(x, axis as number)),
      axis as number,
    );
  },
  squeeze: ([x]) =>
    reshaped(
      asNode(x!),
      asNode(x!).shape.filter((extent) => extent !== 1),
    ),
  unsqueeze: ([x], { axis }) => unsqueeze(asNode(x!), axis as number),
  expand: ([x], { shape }) => expand(asNode(x!), shape as Shape),
  split: ([x], { size, axis, piece }) => {
    const begin = (size as number) * (piece as number);
    return slice(asNode(x!), begin, begin + (size as number), axis as number);
  },
  pad: ([x], { padding, value }) => pad(asNode(x!), padding as number[], value as number),
  tril: ([x], { diagonal }) => triangle((row, column) => column <= row + (diagonal as number), asNode(x!)),
  triu: ([x], { diagonal }) => triangle((row, column) => column >= row + (diagonal as number), asNode(x!)),
  flip: ([x], { axis }) => flip(asNode(x!), axis as number),
  roll: ([x], { by, axis }) => {
    const { shape } = asNode(x!);
    const own = axisOf(shape, axis as number);
    const from = (index: number) => (((index - (by as number)) % shape[own]!) + shape[own]!) % shape[own]!;
    return moved(asNode(x!), shape, (at) => at.with(own, from(at[own]!)));
  },
  gather: ([table, indices]) => gather(asNode(table!), asNode(indices!)),
  gatherAlong: ([x, indices], { axis }) => gatherAlong(asNode(x!), asNode(indices!), axis as number),
  /** On the same memory. */
  detach: ([x]) => constant(asNode(x!)),
  clone: ([x]) =>
    pick(
      asNode(x!),
      asNode(x!).data.map((_, i) => i),
      asNode(x!).shape,
    ),
};
