/** Products and distances of vectors, each with each. */
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { normalizeAxis, type Shape, showShape } from "../../values/shape";
import { cast } from "../cast";
import { defineFunction } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { matmul } from "../matmul";
import { norm } from "../reduce/norm";
import { sum } from "../reduce/reduce";
import { diagonalOf } from "../shape/diagonals";
import { unsqueeze } from "../shape/extents";
import { concat, reshape, slice } from "../shape/shape";

function checkRank(where: string, x: Tensor, name: string, rank: number): void {
  const what = rank === 1 ? "one axis" : `${rank} axes`;
  check(x.shape.length === rank, "BAD_SHAPE", where, () => `${name} must have ${what}, got ${showShape(x.shape)}.`);
}

/**
 * a[i] b[j] of two vectors [n] and [m], as a matrix [n, m].
 *
 * @throws OptError BAD_SHAPE for what is no vector
 * @example
 * outer(tensor([1, 2]), tensor([3, 4])); // [[3, 4], [6, 8]]
 */
export const outer = /* @__PURE__ */ defineFunction(
  { name: "outer", torch: "torch.outer(a, b)", tensors: ["n", "m"] },
  (a: Tensor, b: Tensor): Tensor => {
    checkRank("outer", a, "a", 1);
    checkRank("outer", b, "b", 1);
    return elementwise("mul", [unsqueeze(a, 1), b]);
  },
);

/**
 * The sum of products of two vectors [n].
 *
 * @throws OptError BAD_SHAPE for what is no vector, or for others' length
 * @example
 * vdot(tensor([1, 2]), tensor([3, 4])); // 11
 */
export const vdot = /* @__PURE__ */ defineFunction(
  { name: "vdot", torch: "torch.vdot(a, b)", tensors: ["n", "n"] },
  (a: Tensor, b: Tensor): Tensor => {
    checkRank("vdot", a, "a", 1);
    checkRank("vdot", b, "b", 1);
    checkExtents("vdot", a.shape[0]!, b.shape[0]!);
    return sum(elementwise("mul", [a, b]));
  },
);

function checkExtents(where: string, a: number, b: number): void {
  check(a === b, "BAD_SHAPE", where, () => `extents must be equal, got ${a} and ${b}.`);
}

/**
 * The Kronecker product: each element of a times b, in blocks. Missing axes come first, as extents of 1.
 *
 * @example
 * kron(tensor([1, 2]), tensor([1, 10])); // [1, 10, 2, 20]
 */
export const kron = /* @__PURE__ */ defineFunction(
  { name: "kron", torch: "torch.kron(a, b)", tensors: ["nm", "pq"] },
  (a: Tensor, b: Tensor): Tensor => {
    const rank = Math.max(a.shape.length, b.shape.length);
    const full = ({ shape }: Tensor): Shape => [...new Array(rank - shape.length).fill(1), ...shape];
    const [outside, inside] = [full(a), full(b)];
    const product = elementwise("mul", [
      reshape(
        a,
        outside.flatMap((extent) => [extent, 1]),
      ),
      reshape(
        b,
        inside.flatMap((extent) => [1, extent]),
      ),
    ]);
    return reshape(
      product,
      outside.map((extent, i) => extent * inside[i]!),
    );
  },
);

/**
 * The vector product of vectors of 3, along an axis. The other axes broadcast.
 *
 * @throws OptError BAD_SHAPE unless the axis has 3 elements
 * @example
 * cross(tensor([1, 0, 0]), tensor([0, 1, 0])); // [0, 0, 1]
 */
export const cross = /* @__PURE__ */ defineFunction(
  { name: "cross", torch: "torch.linalg.cross(a, b)", tensors: ["n3", "n3"] },
  (a: Tensor, b: Tensor, axis = -1): Tensor => {
    for (const x of [a, b]) {
      const extent = x.shape[normalizeAxis("cross", axis, x.shape.length)];
      check(extent === 3, "BAD_SHAPE", "cross", () => `axis ${axis} must have 3 elements, got ${showShape(x.shape)}.`);
    }
    const turned = (x: Tensor, by: number) => concat([slice(x, by, 3, axis), slice(x, 0, by, axis)], axis);
    const product = (x: number, y: number) => elementwise("mul", [turned(a, x), turned(b, y)]);
    return elementwise("sub", [product(1, 2), product(2, 1)]);
  },
);

/**
 * The distance of each row of a [..., n, k] from each row of b [..., m, k]: (sum |a - b|^p)^(1/p), as [..., n, m].
 *
 * @example
 * cdist(tensor([[0, 0]]), tensor([[3, 4], [0, 1]])); // [[5, 1]]
 */
export const cdist = /* @__PURE__ */ defineFunction(
  {
    name: "cdist",
    torch: "(a.unsqueeze(-2) - b.unsqueeze(-3)).norm(dim=-1) # torch.cdist(a, b)",
    tensors: ["nk", "mk"],
  },
  (a: Tensor, b: Tensor, p = 2): Tensor => {
    for (const [name, x] of [
      ["a", a],
      ["b", b],
    ] as const)
      check(x.shape.length >= 2, "BAD_SHAPE", "cdist", () => `${name} must have rows, got ${showShape(x.shape)}.`);
    const numbers = (x: Tensor) => (isFloat(x.dtype) ? x : cast(x, "f32")); // differences of u8 are modulo 2^8
    return norm(elementwise("sub", [unsqueeze(numbers(a), -2), unsqueeze(numbers(b), -3)]), p, -1);
  },
);

/**
 * The sum of products over the last `axes` axes of a and the first of b, which are as long.
 *
 * @throws OptError BAD_SHAPE for others' extents; BAD_ARGUMENT for more axes than there are
 * @example
 * tensordot(ones([2, 3]), ones([3, 4]), 1); // [2, 4], each 3
 */
export const tensordot = /* @__PURE__ */ defineFunction(
  { name: "tensordot", torch: "torch.tensordot(a, b, 2)", tensors: ["nkl", "klm"], arguments: [2] },
  (a: Tensor, b: Tensor, axes = 2): Tensor => {
    const most = Math.min(a.shape.length, b.shape.length);
    const isCount = Number.isInteger(axes) && axes >= 0 && axes <= most;
    check(isCount, "BAD_ARGUMENT", "tensordot", () => `axes must be from 0 to ${most}, got ${show(axes)}.`);
    const [left, inner] = [a.shape.slice(0, a.shape.length - axes), a.shape.slice(a.shape.length - axes)];
    const [others, right] = [b.shape.slice(0, axes), b.shape.slice(axes)];
    const areEqual = inner.every((extent, i) => extent === others[i]);
    check(
      areEqual,
      "BAD_SHAPE",
      "tensordot",
      () => `the axes that are summed must be as long, got ${showShape(inner)} and ${showShape(others)}.`,
    );
    const size = (shape: Shape) => shape.reduce((x, y) => x * y, 1);
    const product = matmul(reshape(a, [size(left), size(inner)]), reshape(b, [size(inner), size(right)]));
    return reshape(product, [...left, ...right]);
  },
);

/**
 * The sum of the main diagonal of a matrix.
 *
 * @throws OptError BAD_SHAPE for what is no matrix
 * @example
 * trace(tensor([[1, 2], [3, 4]])); // 5
 */
export const trace = /* @__PURE__ */ defineFunction(
  { name: "trace", torch: "torch.trace(a)", tensors: ["nm"] },
  (a: Tensor): Tensor => {
    checkRank("trace", a, "a", 2);
    const least = Math.min(...a.shape);
    return sum(diagonalOf(slice(slice(a, 0, least, 0), 0, least, 1)));
  },
);
