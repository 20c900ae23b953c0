/** Axes moved, split, joined and compared. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import { markCopy, markPart, markPermuted } from "../../tensor/copied";
import type { Tensor } from "../../tensor/tensor";
import { normalizeAxis, showShape, sizeOf } from "../../values/shape";
import { defineFunction } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { ne } from "../elementwise/logic";
import { diagonalOf } from "../shape/diagonals";
import { taken } from "../shape/region";
import { repeat } from "../shape/repeat";
import { concat, permute, reshape, slice, sliceRegion } from "../shape/shape";

type Axes = number | readonly number[];

function axesOf(where: string, x: Tensor, axes: Axes): number[] {
  const list = (Array.isArray(axes) ? axes : [axes]).map((axis) => normalizeAxis(where, axis, x.shape.length));
  check(new Set(list).size === list.length, "BAD_ARGUMENT", where, () => `axes must differ, got ${show(axes)}.`);
  return list;
}

/**
 * Axes at other places, the rest in their order, as a copy: axis `from` becomes axis `to`.
 *
 * @throws OptError BAD_ARGUMENT for axes that are not there or equal, or other counts of them
 * @example
 * movedim(zeros([2, 3, 4]), 0, -1); // [3, 4, 2]
 */
export const movedim = /* @__PURE__ */ defineFunction(
  { name: "movedim", torch: "torch.movedim(a, 0, 2)", tensors: ["nmk"], arguments: [0, 2] },
  (x: Tensor, from: Axes, to: Axes): Tensor => {
    const [sources, places] = [axesOf("movedim", x, from), axesOf("movedim", x, to)];
    const areAsMany = sources.length === places.length;
    check(areAsMany, "BAD_ARGUMENT", "movedim", () => `needs as many axes, got ${show(from)} and ${show(to)}.`);
    const rest = x.shape.map((_, axis) => axis).filter((axis) => !sources.includes(axis));
    const order = x.shape.map((_, i) => (places.includes(i) ? sources[places.indexOf(i)]! : rest.shift()!));
    return markPermuted("movedim", permute(x, order), x, order);
  },
);

/**
 * An axis as several, of these extents: a view. One of them may be -1.
 *
 * @throws OptError BAD_SHAPE unless they fit the axis; BAD_ARGUMENT
 * @example
 * unflatten(zeros([2, 12]), 1, [3, -1]); // [2, 3, 4]
 */
export const unflatten = /* @__PURE__ */ defineFunction(
  { name: "unflatten", torch: "a.unflatten(1, (2, 2))", tensors: ["n4"], arguments: [1, [2, 2]] },
  (x: Tensor, axis: number, extents: readonly number[]): Tensor => {
    const along = normalizeAxis("unflatten", axis, x.shape.length);
    const areExtents = Array.isArray(extents) && extents.length > 0 && extents.every(Number.isInteger);
    checkValue(areExtents, "unflatten", "extents", "a list of integers", extents, "For example [3, -1].");
    const known = sizeOf(extents.filter((extent) => extent !== -1));
    const whole = extents.map((extent) => (extent === -1 ? x.shape[along]! / known : extent));
    const fits = sizeOf(whole) === x.shape[along] && whole.every((extent) => Number.isInteger(extent) && extent >= 0);
    check(
      fits && extents.filter((extent) => extent === -1).length < 2,
      "BAD_SHAPE",
      "unflatten",
      () => `extents must multiply to ${x.shape[along]}, got ${showShape(extents)}.`,
      "One of them may be -1.",
    );
    return reshape(x, x.shape.toSpliced(along, 1, ...whole));
  },
);

/**
 * Repeated along the last axes, as often as `counts` says: `repeat`, but with fewer counts than axes.
 *
 * @throws OptError BAD_ARGUMENT for what are no counts
 * @example
 * tile(tensor([[1, 2]]), [2]); // [[1, 2, 1, 2]]
 */
export const tile = /* @__PURE__ */ defineFunction(
  { name: "tile", torch: "torch.tile(a, (2,))", tensors: ["nm"], arguments: [[2]] },
  (x: Tensor, counts: readonly number[]): Tensor => {
    checkValue(Array.isArray(counts), "tile", "counts", "a list of counts", counts, "For example [2, 1].");
    const missing = Math.max(x.shape.length - counts.length, 0);
    return repeat(x, [...new Array<number>(missing).fill(1), ...counts]);
  },
);

/** With axes of 1: in front, but a third one at the end, as in PyTorch. */
function withAxes(x: Tensor, least: number): Tensor {
  const { shape } = x;
  const missing = Math.max(least - shape.length, 0);
  if (missing === 0) return reshape(x, shape);
  const behind = least === 3 && shape.length > 0 ? [1] : [];
  return reshape(x, [...new Array<number>(missing - behind.length).fill(1), ...shape, ...behind]);
}

const atLeast = (least: number, letters: string) =>
  defineFunction(
    { name: `atleast${least}d`, torch: `torch.atleast_${least}d(a)`, tensors: [letters] },
    (x: Tensor): Tensor => withAxes(x, least),
  );

/**
 * A number as a vector [1]; other tensors as they are: a view.
 *
 * @example
 * atleast1d(tensor(3)); // [3]
 */
export const atleast1d = /* @__PURE__ */ atLeast(1, "");

/**
 * With two axes or more, new ones of extent 1 first: a view.
 *
 * @example
 * atleast2d(tensor([1, 2])); // [[1, 2]]
 */
export const atleast2d = /* @__PURE__ */ atLeast(2, "n");

/**
 * With three axes or more, as a view: a vector [n] becomes [1, n, 1], a matrix [n, m] becomes [n, m, 1].
 *
 * @example
 * atleast3d(zeros([2, 3])); // [2, 3, 1]
 */
export const atleast3d = /* @__PURE__ */ atLeast(3, "n");

/** By its first letter: along axis 0, 1 or 2, of tensors with so many axes at least. */
const stacked = (letter: string, least: number, second: string) =>
  defineFunction(
    { name: `${letter}stack`, torch: `torch.${letter}stack((a, b))`, tensors: ["nm", second], isList: true },
    (tensors: readonly Tensor[]): Tensor => {
      const all = tensors.map((x) => withAxes(x, least));
      return concat(all, letter === "v" || all[0]!.shape.length === 1 ? 0 : letter === "h" ? 1 : 2);
    },
  );

/**
 * Side by side: along axis 1, vectors along their only one.
 *
 * @throws OptError BAD_SHAPE for other extents along the other axes; BAD_DTYPE, DEVICE_MISMATCH
 * @example
 * hstack([tensor([1, 2]), tensor([3])]); // [1, 2, 3]
 */
export const hstack = /* @__PURE__ */ stacked("h", 1, "nk");

/**
 * One below the other: vectors as rows, other tensors along axis 0.
 *
 * @throws OptError BAD_SHAPE for other extents along the other axes; BAD_DTYPE, DEVICE_MISMATCH
 * @example
 * vstack([tensor([1, 2]), tensor([3, 4])]); // [[1, 2], [3, 4]]
 */
export const vstack = /* @__PURE__ */ stacked("v", 2, "km");

/**
 * One behind the other: along axis 2, of what `atleast3d` makes of them.
 *
 * @throws OptError BAD_SHAPE for other extents along the other axes; BAD_DTYPE, DEVICE_MISMATCH
 * @example
 * dstack([tensor([1, 2]), tensor([3, 4])]); // [[[1, 3], [2, 4]]]
 */
export const dstack = /* @__PURE__ */ stacked("d", 3, "nm");

const MOST_PARTS = 2 ** 20 + 1;

/**
 * Pieces of an axis, as copies: `parts` of them, of which the first are one longer if need be, or cut before the positions that are listed.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * tensorSplit(tensor([1, 2, 3]), 2); // [1, 2] and [3]
 * tensorSplit(tensor([1, 2, 3]), [1]); // [1] and [2, 3]
 */
export const tensorSplit = /* @__PURE__ */ defineFunction(
  { name: "tensorSplit", torch: "torch.tensor_split(a, 2, 1)", tensors: ["n4"], arguments: [2, 1] },
  (x: Tensor, parts: number | readonly number[], axis = 0): Tensor[] => {
    const along = normalizeAxis("tensorSplit", axis, x.shape.length);
    const extent = x.shape[along]!;
    const isCount = Number.isInteger(parts) && (parts as number) > 0 && (parts as number) < MOST_PARTS;
    const isList = Array.isArray(parts) && parts.every(Number.isInteger);
    checkValue(
      isCount || isList,
      "tensorSplit",
      "parts",
      "a count from 1 to 2^20 or positions",
      parts,
      "For example 2.",
    );
    const count = Number(parts);
    const cuts = isList
      ? (parts as readonly number[]).map((at) => Math.min(Math.max(at < 0 ? at + extent : at, 0), extent))
      : Array.from(
          { length: count - 1 },
          (_, i) => (i + 1) * Math.floor(extent / count) + Math.min(i + 1, extent % count),
        );
    return [...cuts, extent].map((end, i) => {
      const start = cuts[i - 1] ?? 0;
      const region = sliceRegion(x, start, Math.max(start, end), along);
      return markPart("tensorSplit", taken("tensorSplit", x, region), x, region.chosen);
    });
  },
);

/**
 * Differences of neighbours along an axis, taken n times.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * diff(tensor([1, 4, 9])); // [3, 5]
 */
export const diff = /* @__PURE__ */ defineFunction(
  { name: "diff", torch: "torch.diff(a, 2, 1)", tensors: ["n4"], arguments: [2, 1] },
  (x: Tensor, n = 1, axis = -1): Tensor => {
    const along = normalizeAxis("diff", axis, x.shape.length);
    checkValue(Number.isInteger(n) && n >= 0, "diff", "n", "an integer >= 0", n, "For example 1.");
    let rest = slice(x, 0, undefined, along);
    for (let i = 0; i < n && rest.shape[along]! > 0; i++) {
      const [later, earlier] = [slice(rest, 1, undefined, along), slice(rest, 0, -1, along)];
      rest = x.dtype === "bool" ? ne(later, earlier) : elementwise("sub", [later, earlier]);
    }
    return rest;
  },
);

/**
 * A diagonal of the matrices that two axes make, as a copy: the one `offset` above the main one. It is the last axis of the result.
 *
 * @throws OptError BAD_ARGUMENT for axes that are not there or equal
 * @example
 * diagonal(tensor([[1, 2], [3, 4]]), 1); // [2]
 */
export const diagonal = /* @__PURE__ */ defineFunction(
  { name: "diagonal", torch: "torch.diagonal(a, 1, 0, 2)", tensors: ["nmk"], arguments: [1, 0, 2] },
  (x: Tensor, offset = 0, axis1 = 0, axis2 = 1): Tensor => {
    checkValue(Number.isInteger(offset), "diagonal", "offset", "an integer", offset, "0 is the main one.");
    const [a, b] = axesOf("diagonal", x, [axis1, axis2]) as [number, number];
    const rest = x.shape.map((_, axis) => axis).filter((axis) => axis !== a && axis !== b);
    const last = permute(x, [...rest, a, b]);
    const [row, column] = [Math.max(-offset, 0), Math.max(offset, 0)];
    const length = Math.max(Math.min(x.shape[a]! - row, x.shape[b]! - column), 0);
    const square = slice(slice(last, row, row + length, -2), column, column + length, -1);
    return markCopy("diagonal", diagonalOf(square), x);
  },
);
