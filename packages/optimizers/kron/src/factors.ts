/** The factors of a parameter's preconditioner: for each side a triangular matrix, or the diagonal of one. */
import {
  argmax,
  einsum,
  eye,
  indexSelect,
  max,
  maximum,
  ones,
  permute,
  prod,
  type Shape,
  stack,
  type Tensor,
  triangularSolve,
} from "@opt/core";

/** What decides which factors are diagonal. */
export interface FactorOptions {
  readonly maxSizeTriangular: number;
  readonly memorySaveMode: "oneDiagonal" | "allDiagonal" | null;
}

/** Keeps divisors above 0: the smallest normal number of float32. */
export const TINY = 2 ** -126;

/** A scalar counts as a vector. */
export const sidesOf = (shape: Shape): Shape => (shape.length === 0 ? [1] : shape);

/** The shapes of the factors: [n, n] or [n]. Vectors have diagonals. */
export function factorShapes(shape: Shape, { maxSizeTriangular, memorySaveMode }: FactorOptions): Shape[] {
  const sides = sidesOf(shape);
  if (sides.includes(0)) return [];
  const largest = sides.lastIndexOf(Math.max(...sides));
  return sides.map((extent, side) => {
    const isSaved = memorySaveMode === "allDiagonal" || (memorySaveMode === "oneDiagonal" && side === largest);
    const isDiagonal = sides.length < 2 || extent === 1 || extent > maxSizeTriangular || isSaved;
    return isDiagonal ? [extent] : [extent, extent];
  });
}

/** The factor before the first step. */
export function identity({ shape, dtype, device }: Tensor): Tensor {
  return shape.length === 1 ? ones(shape, { dtype, device }) : eye(shape[0]!, { dtype, device });
}

/** The axes of x by letters, and with another letter for one of them. */
function axes(x: Tensor, side: number): readonly [all: string, other: string] {
  const letters = x.shape.map((_, i) => String.fromCharCode(97 + i));
  return [letters.join(""), letters.with(side, "z").join("")];
}

/** A diagonal beside the other sides of x. */
const along = (x: Tensor, diagonal: Tensor, side: number) =>
  diagonal.reshape(x.shape.map((extent, i) => (i === side ? extent : 1)));

/** x by a factor for each side: Q x, or Q^T x. */
export function multiplied(x: Tensor, factors: readonly Tensor[], isTransposed = false): Tensor {
  return factors.reduce((result, factor, side) => {
    if (factor.shape.length === 1) return result.mul(along(result, factor, side));
    const [all, other] = axes(result, side);
    return einsum(`${isTransposed ? `${all[side]}z` : `z${all[side]}`},${all}->${other}`, factor, result);
  }, x);
}

/** Q^-T x for each side. */
export function solved(x: Tensor, factors: readonly Tensor[]): Tensor {
  return factors.reduce((result, factor, side) => {
    if (factor.shape.length === 1) return result.div(along(result, factor, side));
    const last = result.shape.length - 1;
    const order = result.shape.map((_, i) => (i === side ? last : i === last ? side : i));
    const turned = permute(result, order);
    const rows = turned.reshape([-1, factor.shape[0]!]);
    return permute(triangularSolve(factor, rows, { upper: true, left: false }).reshape(turned.shape), order);
  }, x);
}

/** The products of x with itself over all sides but one, or their diagonal. */
export function outerOf(x: Tensor, side: number, { shape }: Tensor): Tensor {
  const [all, other] = axes(x, side);
  if (shape.length === 1) return einsum(`${all}->${all[side]}`, x.mul(x));
  return einsum(`${all},${other}->${all[side]}z`, x, x);
}

/** A lower bound of the spectral norm of a symmetric matrix, by a step from its longest row; of a diagonal the norm. */
export function normBound(x: Tensor): Tensor {
  const scale = maximum(max(x.abs()), TINY);
  if (x.shape.length === 1) return scale;
  const scaled = x.div(scale);
  const longest = argmax(scaled.mul(scaled).sum(1)).reshape([1]);
  const row = indexSelect(scaled, 0, longest);
  const first = row.matmul(scaled);
  const second = first.div(maximum(lengthOf(first), TINY)).matmul(scaled);
  return scale.mul(lengthOf(second));
}

const lengthOf = (x: Tensor) => x.mul(x).sum().sqrt();

/** Factors whose largest numbers are equal, with the same product. */
export function balanced(factors: readonly Tensor[]): Tensor[] {
  if (factors.length < 2) return [...factors];
  const largest = factors.map((factor) => max(factor.abs()));
  const mean = prod(stack(largest)).pow(1 / factors.length);
  return factors.map((factor, i) => factor.mul(mean.div(largest[i]!)));
}
