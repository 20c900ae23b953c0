/** Parts of tensors, repeated, turned and put together. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { markPart } from "../../tensor/copied";
import type { Tensor } from "../../tensor/tensor";
import { normalizeAxis, showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { defineFunction } from "../define-function";
import { sigmoid } from "../elementwise/activations";
import { elementwise } from "../elementwise/elementwise";
import { diagonalOf, diagonalsOf } from "../shape/diagonals";
import { expand, squeeze, unsqueeze } from "../shape/extents";
import { split } from "../shape/join";
import { flip } from "../shape/repeat";
import { reshape, slice, transpose } from "../shape/shape";

/**
 * The parts along an axis, each without it, as copies.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * unbind(tensor([[1, 2], [3, 4]])); // [1, 2] and [3, 4]
 */
export const unbind = /* @__PURE__ */ defineFunction(
  { name: "unbind", torch: "torch.unbind(a, 1)", tensors: ["nmk"], arguments: [1] },
  (x: Tensor, axis = 0): Tensor[] => {
    const along = normalizeAxis("unbind", axis, x.shape.length);
    return split(x, 1, along).map((part, i) => {
      const chosen = x.shape.map((_, axis) => (axis === along ? i : null));
      return markPart("unbind", squeeze(part, along), x, chosen);
    });
  },
);

/**
 * Each element `repeats` times, one behind the other along an axis; without an axis of the flattened tensor.
 *
 * @throws OptError BAD_ARGUMENT for what is no count
 * @example
 * repeatInterleave(tensor([1, 2]), 2); // [1, 1, 2, 2]
 */
export const repeatInterleave = /* @__PURE__ */ defineFunction(
  { name: "repeatInterleave", torch: "a.repeat_interleave(3, 1)", tensors: ["nmk"], arguments: [3, 1] },
  (x: Tensor, repeats: number, axis?: number): Tensor => {
    const isCount = Number.isInteger(repeats) && repeats >= 0;
    checkValue(isCount, "repeatInterleave", "repeats", "a whole number", repeats, "For example 2.");
    if (axis === undefined) return reshape(expand(reshape(x, [x.size, 1]), [x.size, repeats]), [x.size * repeats]);
    const along = normalizeAxis("repeatInterleave", axis, x.shape.length);
    const wide = expand(unsqueeze(x, along + 1), x.shape.toSpliced(along + 1, 0, repeats));
    return reshape(wide, x.shape.with(along, x.shape[along]! * repeats));
  },
);

/**
 * Turned by quarters in the plane of two axes, from the first to the second.
 *
 * @throws OptError BAD_ARGUMENT for axes that are equal or not there
 * @example
 * rot90(tensor([[1, 2], [3, 4]])); // [[2, 4], [1, 3]]
 */
export const rot90 = /* @__PURE__ */ defineFunction(
  { name: "rot90", torch: "torch.rot90(a, 1, [0, 2])", tensors: ["nmk"], arguments: [1, [0, 2]] },
  (x: Tensor, turns = 1, axes: readonly [number, number] = [0, 1]): Tensor => {
    checkValue(Number.isInteger(turns), "rot90", "turns", "an integer", turns, "For example 1.");
    const areTwo = Array.isArray(axes) && axes.length === 2;
    checkValue(areTwo, "rot90", "axes", "two axes", axes, "For example [0, 1].");
    const [a, b] = axes.map((axis) => normalizeAxis("rot90", axis, x.shape.length)) as [number, number];
    checkValue(a !== b, "rot90", "axes", "two axes that differ", axes, "For example [0, 1].");
    const quarters = ((turns % 4) + 4) % 4;
    if (quarters === 0) return flip(x, []);
    if (quarters === 2) return flip(x, [a, b]);
    return quarters === 1 ? flip(transpose(x, a, b), a) : transpose(flip(x, a), a, b);
  },
);

/**
 * The main diagonal of a matrix, or the square matrix with a vector on its main diagonal.
 *
 * @throws OptError BAD_SHAPE for other tensors
 * @example
 * diag(tensor([1, 2])); // [[1, 0], [0, 2]]
 */
export const diag = /* @__PURE__ */ defineFunction(
  { name: "diag", torch: "torch.diag(a)", tensors: ["nm"] },
  (x: Tensor): Tensor => {
    const { shape } = x;
    const isOf = shape.length === 1 || shape.length === 2;
    check(isOf, "BAD_SHAPE", "diag", () => `needs a vector or a matrix, got ${showShape(shape)}.`);
    if (shape.length === 1) return diagonalsOf(x);
    const least = Math.min(...shape);
    return diagonalOf(slice(slice(x, 0, least, 0), 0, least, 1));
  },
);

/**
 * Coordinates of a grid: for two vectors [n] and [m] two matrices [n, m], the first constant along rows ("ij").
 *
 * @throws OptError BAD_SHAPE for what is no vector
 * @example
 * meshgrid(tensor([1, 2]), tensor([3, 4])); // [[1, 1], [2, 2]] and [[3, 4], [3, 4]]
 */
export const meshgrid = /* @__PURE__ */ defineFunction(
  { name: "meshgrid", torch: "torch.meshgrid(a, b, indexing='ij')", tensors: ["n", "m"] },
  (...vectors: Tensor[]): Tensor[] => {
    for (const vector of vectors) {
      checkTensor("meshgrid", vector);
      const { shape } = vector;
      check(shape.length === 1, "BAD_SHAPE", "meshgrid", () => `needs vectors, got ${showShape(shape)}.`);
    }
    const all = vectors.map(({ size }) => size);
    return vectors.map((vector, i) =>
      expand(
        reshape(
          vector,
          all.map((extent, k) => (k === i ? extent : 1)),
        ),
        all,
      ),
    );
  },
);

/**
 * The first half of an axis times the sigmoid of the second (Dauphin et al. 2017).
 *
 * @throws OptError BAD_SHAPE for an odd extent
 * @example
 * glu(tensor([2, 0])); // [1]
 */
export const glu = /* @__PURE__ */ defineFunction(
  { name: "glu", torch: "F.glu(a, 1)", tensors: ["n4"], arguments: [1] },
  (x: Tensor, axis = -1): Tensor => {
    const along = normalizeAxis("glu", axis, x.shape.length);
    const half = x.shape[along]! / 2;
    check(Number.isInteger(half), "BAD_SHAPE", "glu", () => `axis ${axis} must be even, got ${showShape(x.shape)}.`);
    const [a, b] = split(x, half, along) as [Tensor, Tensor];
    return elementwise("mul", [a, sigmoid(b)]);
  },
);
