/** Ops over axes: sums, extremes, scans and orders. */
import { sizeOf } from "../numbers";
import { reduced } from "../op-kind";
import type { Options, Shape } from "../program";
import { concat, slice } from "./arranging";
import { abs, asNode, exp, type Interpretation, log, mul, raised, sub } from "./elementwise";
import { constant, filled, Node, pick, plus, reshaped, times } from "./node";
import { axisOf, eachPlace, gathered, moved, mustHold, stretched } from "./places";

interface Reduction {
  /** With extents of 1 in place of the axes. */
  readonly kept: Shape;
  readonly shape: Shape;
  /** Elements that come to each result. */
  readonly count: number;
}

function reduction(x: Node, { axis, keepDim }: Options): Reduction {
  const axes =
    axis === undefined ? x.shape.map((_, i) => i) : ([axis].flat() as number[]).map((a) => axisOf(x.shape, a));
  mustHold(new Set(axes).size === axes.length, "an axis twice");
  const kept = reduced(x.shape, { axis: axes, keepDim: true });
  const shape = keepDim ? kept : reduced(x.shape, { axis: axes, keepDim: false });
  return { kept, shape, count: sizeOf(axes.map((a) => x.shape[a]!)) };
}

export function sum(x: Node, options: Options = {}): Node {
  const { kept, shape } = reduction(x, options);
  return reshaped(
    gathered(x, kept, (indices) => indices.map((index, axis) => (kept[axis] === 1 ? 0 : index))),
    shape,
  );
}

export const mean = (x: Node, options: Options = {}): Node => {
  const { count } = reduction(x, options);
  return mul(sum(x, options), 1 / count);
};

/** The largest, of which equal ones share the gradient. */
function max(x: Node, options: Options = {}): Node {
  const { kept, shape, count } = reduction(x, options);
  mustHold(count > 0 || sizeOf(shape) === 0, "the largest of nothing");
  const top = topOf(x, kept);
  const isTop = constant({ shape: x.shape, data: x.data.map((v, i) => Number(v === top.data[i])) });
  const share = times(isTop, stretched(raised(sum(isTop, { ...options, keepDim: true }), -1), x.shape));
  return reshaped(sum(times(x, share), options), shape);
}

/** For each element the largest of those that are reduced with it. */
function topOf(x: Node, kept: Shape): Node {
  const groups = stretched(
    new Node(
      kept,
      Float64Array.from({ length: sizeOf(kept) }, (_, i) => i),
    ),
    x.shape,
  ).data;
  const tops = new Float64Array(sizeOf(kept)).fill(Number.NEGATIVE_INFINITY);
  x.data.forEach((v, i) => {
    tops[groups[i]!] = Math.max(tops[groups[i]!]!, v);
  });
  return constant({ shape: x.shape, data: groups.map((group) => tops[group]!) });
}

const min = (x: Node, options: Options = {}): Node => mul(max(mul(x, -1), options), -1);

/** Each row along an axis on its own, as nodes of the places of its elements. */
function ordered(x: Node, axis: number, order: (row: number[]) => number[], count?: number): [Node, Node] {
  const own = axisOf(x.shape, axis);
  const extent = x.shape[own]!;
  const last = moved(constant({ shape: x.shape, data: x.data.map((_, i) => i) }), rowsLast(x.shape, own), (at) =>
    [...at.slice(0, -1)].toSpliced(own, 0, at.at(-1)!),
  );
  const rows = extent === 0 ? 0 : last.data.length / extent;
  const [places, indices]: [number[], number[]] = [[], []];
  for (let row = 0; row < rows; row++) {
    const at = last.data.subarray(row * extent, (row + 1) * extent);
    for (const index of order(Array.from(at, (place) => x.data[place]!)).slice(0, count)) {
      places.push(at[index]!);
      indices.push(index);
    }
  }
  const rowShape = [...rowsLast(x.shape, own).slice(0, -1), count ?? extent];
  const back = (node: Node): Node =>
    moved(node, x.shape.with(own, count ?? extent), (at) => [...at.toSpliced(own, 1), at[own]!]);
  return [back(pick(x, places, rowShape)), back(new Node(rowShape, Float64Array.from(indices)))];
}

const rowsLast = (shape: Shape, axis: number): Shape => [...shape.toSpliced(axis, 1), shape[axis]!];

const sorted =
  (descending: boolean) =>
  (row: number[]): number[] =>
    row.map((_, i) => i).sort((a, b) => (descending ? row[b]! - row[a]! : row[a]! - row[b]!));

/** Index of the first of the largest. */
function argmax(x: Node, { axis, keepDim }: Options, sign: number): Node {
  const first = (row: number[]) => [row.reduce((best, v, i) => (v * sign > row[best]! * sign ? i : best), 0)];
  if (axis === undefined) return reshaped(ordered(reshaped(x, [x.data.length]), 0, first, 1)[1], []);
  const own = axisOf(x.shape, axis as number);
  mustHold(x.shape[own]! > 0, "the largest of nothing");
  const [, indices] = ordered(x, own, first, 1);
  return keepDim ? indices : reshaped(indices, x.shape.toSpliced(own, 1));
}

/** Sums of all before and itself, along an axis. */
function cumsum(x: Node, axis: number, isReverse = false): Node {
  const own = axisOf(x.shape, axis);
  const stride = sizeOf(x.shape.slice(own + 1));
  const data = x.data.slice();
  const index = eachPlace(x.shape, (indices) => indices[own]!);
  const last = x.shape[own]! - 1;
  for (let i = 0; i < data.length; i++) {
    const at = isReverse ? data.length - 1 - i : i;
    if (index[at] !== (isReverse ? last : 0)) data[at]! += data[isReverse ? at + stride : at - stride]!;
  }
  return new Node(x.shape, data, [{ of: x, pull: (g) => cumsum(g, axis, !isReverse) }]);
}

/** Products of all before and itself, one after the other: never a part of them that the result does not have. */
function cumprod(x: Node, axis: number): Node {
  const own = axisOf(x.shape, axis);
  if (sizeOf(x.shape) === 0) return x;
  const products: Node[] = [];
  for (let i = 0; i < x.shape[own]!; i++) {
    const element = slice(x, i, i + 1, own);
    products.push(i === 0 ? element : times(products.at(-1)!, element));
  }
  return concat(products, own);
}

function prod(x: Node, options: Options): Node {
  const axis = options.axis as number;
  const { shape } = reduction(x, options);
  const extent = x.shape[axisOf(x.shape, axis)]!;
  if (extent === 0) return plus(filled(shape, 1), sum(x, options));
  return reshaped(slice(cumprod(x, axis), extent - 1, extent, axis), shape);
}

function logsumexp(x: Node, options: Options): Node {
  // Of nothing: log(0).
  if (sizeOf(x.shape) === 0) return log(sum(x, options));
  const { kept, shape } = reduction(x, options);
  const top = topOf(x, kept);
  const highest = max(constant(x), { ...options, keepDim: true });
  return plus(log(sum(exp(sub(x, top)), options)), reshaped(highest, shape));
}

function logcumsumexp(x: Node, axis: number): Node {
  const top = topOf(x, reduced(x.shape, { axis: axisOf(x.shape, axis), keepDim: true }));
  return plus(log(cumsum(exp(sub(x, top)), axis)), top);
}

export function softmax(x: Node, axis: number): Node {
  return exp(logSoftmax(x, axis));
}

export function logSoftmax(x: Node, axis: number): Node {
  if (x.shape.length === 0) return logSoftmax(reshaped(x, [1]), 0);
  return sub(x, logsumexp(x, { axis: axisOf(x.shape, axis), keepDim: true }));
}

/** Without a correction. */
export function variance(x: Node, options: Options): Node {
  const centered = sub(x, mean(x, { ...options, keepDim: true }));
  return mean(times(centered, centered), options);
}

/** Of no order but 1 and Infinity it is met with zeros in the data. */
function norm(x: Node, p: number, options: Options): Node {
  if (p === 1) return sum(abs(x), options);
  if (p === Number.POSITIVE_INFINITY) return max(abs(x), options);
  return raised(sum(raised(abs(x), p), options), 1 / p);
}

const over =
  (f: (x: Node, options: Options) => Node): Interpretation =>
  ([x], options) =>
    f(asNode(x!), options);
const along =
  (f: (x: Node, axis: number) => Node): Interpretation =>
  ([x], { axis }) =>
    f(asNode(x!), axis as number);

export const REDUCING: Readonly<Record<string, Interpretation>> = {
  sum: over(sum),
  mean: over(mean),
  max: over(max),
  min: over(min),
  argmax: over((x, options) => argmax(x, options, 1)),
  argmin: over((x, options) => argmax(x, options, -1)),
  var: over(variance),
  norm: over((x, { p = 2, ...options }) => norm(x, Number(p), options)),
  prod: over(prod),
  logsumexp: over(logsumexp),
  cumsum: along((x, axis) => cumsum(x, axis)),
  cumprod: along(cumprod),
  logcumsumexp: along(logcumsumexp),
  softmax: along(softmax),
  logSoftmax: along(logSoftmax),
  sort: over((x, { axis, descending }) => ordered(x, axis as number, sorted(!!descending))[0]),
  argsort: over((x, { axis, descending }) => ordered(constant(x), axis as number, sorted(!!descending))[1]),
  topk: over((x, { axis, k, largest }) => {
    mustHold((k as number) <= x.shape[axisOf(x.shape, axis as number)]!, "more than there are");
    return ordered(x, axis as number, sorted(!!largest), k as number)[0];
  }),
};
