/** Initialisers of matrices and kernels as wholes: orthogonal, identities, sparse columns. */
import { check, checkOptions, checkTensor, type Generator, show, type Tensor } from "@opt/core";
import { checkArguments, checkDeviation, fillWith, GENERATOR, type InitializerOptions, normals } from "./initializers";

export interface OrthogonalOptions extends InitializerOptions {
  /** A factor. Default 1. */
  readonly gain?: number;
}

/**
 * Orthonormal rows or columns, whichever are fewer, times `gain`: of a matrix [rows, the other axes together] (Saxe et al. 2013).
 * They are those of a QR decomposition of normal draws, R having a positive diagonal, as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE below two axes
 * @example
 * const weight = orthogonal(parameter([[0, 0], [0, 0]]), { gain: gainOf("relu") });
 */
export function orthogonal(target: Tensor, options: OrthogonalOptions = {}): Tensor {
  const where = "orthogonal";
  checkOptions(where, options, { ...GENERATOR, gain: "number" });
  const { gain = 1, ...drawn } = options;
  const generator = checkArguments(where, target, { gain }, drawn);
  const [rows = 0, ...others] = target.shape;
  check(
    target.shape.length >= 2,
    "BAD_SHAPE",
    where,
    () => `needs a matrix or a kernel, got shape [${target.shape}].`,
    "Use uniform or normal for vectors.",
  );
  const columns = others.reduce((a, b) => a * b, 1);
  const vectors = orthonormal(Math.min(rows, columns), Math.max(rows, columns), generator);
  let place = 0;
  return fillWith(target, () => {
    const [row, column] = [Math.floor(place / columns), place % columns];
    place++;
    return gain * (rows < columns ? vectors[row]![column]! : vectors[column]![row]!);
  });
}

/** `count` vectors of `length` normal draws, each made orthogonal to those before it: twice, since once leaves rounding errors. */
function orthonormal(count: number, length: number, generator: Generator): Float64Array[] {
  const next = normals(generator);
  const vectors: Float64Array[] = [];
  for (let i = 0; i < count; i++) {
    const vector = Float64Array.from({ length }, next);
    for (let pass = 0; pass < 2; pass++) {
      for (const other of vectors) {
        const share = dot(vector, other);
        for (let k = 0; k < length; k++) vector[k]! -= share * other[k]!;
      }
    }
    const norm = Math.sqrt(dot(vector, vector));
    vectors.push(vector.map((value) => value / norm));
  }
  return vectors;
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k]! * b[k]!;
  return sum;
}

/**
 * 1 on the main diagonal of a matrix, else 0: a linear layer that passes its input.
 *
 * @throws OptError BAD_SHAPE for what is no matrix
 * @example
 * import { eye } from "@opt/nn";
 * const weight = eye(parameter([[0, 0], [0, 0]])); // [[1, 0], [0, 1]]
 */
export function eye(target: Tensor): Tensor {
  const columns = checkMatrix("eye", target);
  let place = 0;
  return fillWith(target, () => {
    const at = place++;
    return Math.floor(at / columns) === at % columns ? 1 : 0;
  });
}

/** How many columns it has. @throws OptError BAD_SHAPE */
function checkMatrix(where: string, target: Tensor): number {
  checkTensor(where, target, "target");
  const isMatrix = target.shape.length === 2;
  check(isMatrix, "BAD_SHAPE", where, () => `needs a matrix, got shape [${target.shape}].`, "Reshape it.");
  return target.shape[1]!;
}

export interface DiracOptions {
  /** The output channels are cut into so many groups, each of which passes its own input channels. Default 1. */
  readonly groups?: number;
}

/**
 * 1 in the middle of the kernels from each channel to itself, else 0: a convolution [out, in / groups, ...kernel] that passes its input.
 *
 * @throws OptError BAD_SHAPE unless it has one, two or three axes of a kernel; BAD_ARGUMENT for groups that do not divide the channels
 * @example
 * const layer = new Conv2d(3, 3, 3, { padding: 1 });
 * dirac(layer.weight);
 */
export function dirac(target: Tensor, options: DiracOptions = {}): Tensor {
  const where = "dirac";
  checkTensor(where, target, "target");
  checkOptions(where, options, { groups: "number" });
  const { groups = 1 } = options;
  const { shape } = target;
  const isKernel = shape.length >= 3 && shape.length <= 5;
  check(
    isKernel,
    "BAD_SHAPE",
    where,
    () => `needs [out, in, ...kernel], got shape [${shape}].`,
    "Use eye for matrices.",
  );
  const [out, inside, ...kernel] = shape as [number, number, ...number[]];
  const isDivisor = Number.isInteger(groups) && groups >= 1 && out % groups === 0;
  check(isDivisor, "BAD_ARGUMENT", where, () => `groups must divide ${out}, got ${show(groups)}.`, "Use 1.");
  const area = kernel.reduce((a, b) => a * b, 1);
  const middle = kernel.reduce((place, extent) => place * extent + Math.floor(extent / 2), 0);
  let place = 0;
  return fillWith(target, () => {
    const at = place++;
    const [from, to] = [Math.floor(at / area) % inside, Math.floor(at / (area * inside)) % (out / groups)];
    return from === to && at % area === middle ? 1 : 0;
  });
}

export interface SparseOptions extends InitializerOptions {
  /** The share of each column that is 0, rounded up. */
  readonly sparsity: number;
  /** The standard deviation of the others. Default 0.01. */
  readonly std?: number;
}

/**
 * N(0, std^2), with zeros at random places of each column of a matrix (Martens 2010).
 *
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE for what is no matrix
 * @example
 * const weight = sparse(zerosLike(rand([10, 4])), { sparsity: 0.9 }); // one number in each column
 */
export function sparse(target: Tensor, options: SparseOptions): Tensor {
  const where = "sparse";
  checkOptions(where, options, { ...GENERATOR, sparsity: "number", std: "number" });
  const { sparsity, std = 0.01, ...drawn } = options;
  const generator = checkArguments(where, target, { sparsity, std }, drawn);
  const columns = checkMatrix(where, target);
  const isShare = sparsity >= 0 && sparsity <= 1;
  check(isShare, "BAD_ARGUMENT", where, () => `sparsity must be in [0, 1], got ${show(sparsity)}.`, "For example 0.9.");
  checkDeviation(where, std);
  const rows = target.shape[0]!;
  const next = normals(generator);
  const values = Float64Array.from({ length: target.size }, () => std * next());
  const zeros = Math.ceil(sparsity * rows);
  for (let column = 0; column < columns; column++) {
    for (const row of generator.permutation(rows).slice(0, zeros)) values[row * columns + column] = 0;
  }
  let place = 0;
  return fillWith(target, () => values[place++]!);
}
