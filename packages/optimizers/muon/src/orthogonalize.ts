/** The nearest orthogonal matrices, roughly, by matrix products in bfloat16. */
import { concat, permute, type Tensor, tidy } from "@opt/core";
import { lrFactor, type MatrixOptions, matricesIn } from "./matrices";

/** a, b, c of x = a x + (b x x^T + c (x x^T)^2) x. */
export type Coefficients = readonly [number, number, number];

/** What Muon's options say of it. */
interface Iteration extends MatrixOptions {
  readonly nsCoefficients: Coefficients | readonly Coefficients[];
  readonly nsSteps: number;
  readonly eps: number;
}

/** Polynomials of degree 5 that were best for singular values from 1e-3 to 1, with room of 1 % for roundings to bfloat16. */
export const POLAR_EXPRESS: readonly Coefficients[] = [
  [8.205160414005574, -22.90193498705605, 16.460724910180314],
  [4.066395159942775, -2.8611540867551426, 0.5183995226694741],
  [3.9095949044379155, -2.823351735039516, 0.5250369769390025],
  [3.2855640171986153, -2.415301959635945, 0.48529406552790866],
  [2.277873287083977, -1.619821765265441, 0.39848078704168355],
  [1.8725756512746514, -1.2307042574884297, 0.35851616209511666],
  [1.856437109755889, -1.2132392819185351, 0.35679978941375945],
  [1.875, -1.25, 0.375],
];

/** Numbers of bfloat16, in float32 for what is computed of them. */
const rounded = (x: Tensor) => x.to("bf16").to("f32");

/** So many elements are orthogonalized at a time: more of them gain nothing and take memory. */
const AT_ONCE = 1 << 20;

/**
 * The directions of a step for updates, each of whose matrices u s v^T becomes u v^T, in float32, times the factor of lr. Matrices of one
 * shape come in one product, with the words of each alone. `free` is called with each update that is read for the last time.
 */
export function orthogonalized(
  updates: readonly Tensor[],
  options: Iteration,
  free: (update: Tensor) => void,
): Tensor[] {
  const results = new Array<Tensor>(updates.length);
  for (const indices of batchesOf(updates, options)) {
    const made = tidy(() =>
      together(
        indices.map((i) => updates[i]!),
        options,
      ),
    );
    indices.forEach((i, k) => {
      results[i] = made[k]!;
      free(updates[i]!);
    });
  }
  return results;
}

/** Positions of updates whose matrices have one shape. */
function batchesOf(updates: readonly Tensor[], options: MatrixOptions): number[][] {
  const batches: number[][] = [];
  const open = new Map<string, { indices: number[]; size: number }>();
  updates.forEach(({ shape, size }, i) => {
    const [, rows, columns] = matricesIn(shape, options);
    const key = `${rows} ${columns}`;
    const batch = open.get(key);
    if (batch !== undefined && batch.size + size <= AT_ONCE) {
      batch.indices.push(i);
      batch.size += size;
    } else {
      const indices = [i];
      batches.push(indices);
      open.set(key, { indices, size });
    }
  });
  return batches;
}

function together(updates: readonly Tensor[], options: Iteration): Tensor[] {
  const stacked = concat(updates.map((update) => update.reshape([...matricesIn(update.shape, options)])));
  const result = polarFactors(stacked, options);
  let begin = 0;
  return updates.map(({ shape, dtype }) => {
    const end = begin + matricesIn(shape, options)[0];
    const own = result.slice(begin, end).reshape(shape).to(dtype);
    begin = end;
    return own.mul(lrFactor(shape, options));
  });
}

/**
 * Of matrices [count, rows, columns]. Each result is rounded to bfloat16 and each sum is of float32 numbers, as PyTorch's matrix products
 * in bfloat16 do. Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024); torch.optim.Muon.
 */
function polarFactors(updates: Tensor, { nsCoefficients, nsSteps, eps }: Iteration): Tensor {
  const [count, rows, columns] = updates.shape as [number, number, number];
  const isTall = rows > columns;
  const flipped = (x: Tensor) => (isTall ? permute(x, [0, 2, 1]) : x);
  const wide = rounded(flipped(updates));
  const squares = wide.mul(wide);
  // A sum of one matrix at a time, whose order does not depend on how many there are.
  const sums = concat(
    Array.from({ length: count }, (_, i) =>
      squares
        .slice(i, i + 1)
        .sum()
        .reshape([1, 1, 1]),
    ),
  );
  const norms = rounded(sums.sqrt());
  let x = rounded(wide.div(rounded(norms.maximum(eps))));
  for (let i = 0; i < nsSteps; i++) {
    const [a, b, c] = coefficientsOf(nsCoefficients, i);
    const gram = rounded(x.matmul(x, { transposeB: true }));
    const polynomial = rounded(gram.mul(b).add(gram.matmul(gram).mul(c)));
    x = rounded(x.mul(a).add(polynomial.matmul(x)));
  }
  return flipped(x);
}

/** Of iteration i; the last ones go on. */
function coefficientsOf(given: Iteration["nsCoefficients"], i: number): Coefficients {
  if (typeof given[0] === "number") return given as Coefficients;
  return (given as readonly Coefficients[])[Math.min(i, given.length - 1)]!;
}
