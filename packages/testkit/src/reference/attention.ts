/** Attention in float64 by its definition: all scores, their softmax, and products of whole matrices. */
import type { AttentionSizes } from "@opt/core/backend";
import { softmax, softmaxGrad } from "./rows";

type Numbers = ArrayLike<number>;

type Elements = (i: number, j: number) => number;

function filled(rows: number, columns: number, of: Elements): Float64Array {
  const all = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) all[i * columns + j] = of(i, j);
  return all;
}

/** C = A B of row-major matrices given by what their elements are. */
function product(m: number, n: number, k: number, a: Elements, b: Elements): Float64Array {
  const [rows, columns] = [filled(m, k, a), filled(n, k, (j, step) => b(step, j))];
  return filled(m, n, (i, j) => {
    let sum = 0;
    for (let step = 0; step < k; step++) sum += rows[i * k + step]! * columns[j * k + step]!;
    return sum;
  });
}

const matrix = (x: Numbers, item: number, rows: number, columns: number) => (i: number, j: number) =>
  x[(item * rows + i) * columns + j]!;

function weightsOf(q: Numbers, k: Numbers, item: number, { queries, keys, width, scale, causal }: AttentionSizes) {
  const [query, key] = [matrix(q, item, queries, width), matrix(k, item, keys, width)];
  const scores = product(queries, keys, width, query, (d, j) => key(j, d)).map((x, at) =>
    causal && at % keys > Math.floor(at / keys) ? Number.NEGATIVE_INFINITY : width === 0 ? 0 : x * scale,
  );
  return softmax(scores, queries, keys, false);
}

/** softmax(scale q k^T) v. */
export function attention(q: Numbers, k: Numbers, v: Numbers, sizes: AttentionSizes): Float64Array {
  const { batch, queries, keys, columns } = sizes;
  const output: number[] = [];
  for (let item = 0; item < batch; item++) {
    const weights = weightsOf(q, k, item, sizes);
    output.push(...product(queries, columns, keys, matrix(weights, 0, queries, keys), matrix(v, item, keys, columns)));
  }
  return Float64Array.from(output);
}

/** The gradients of query, key and value. */
export function attentionGrad(q: Numbers, k: Numbers, v: Numbers, gradient: Numbers, sizes: AttentionSizes) {
  const { batch, queries, keys, width, columns, scale } = sizes;
  const [ofQuery, ofKey, ofValue]: [number[], number[], number[]] = [[], [], []];
  for (let item = 0; item < batch; item++) {
    const weights = weightsOf(q, k, item, sizes);
    const [g, value] = [matrix(gradient, item, queries, columns), matrix(v, item, keys, columns)];
    const ofWeights = product(queries, keys, columns, g, (c, j) => value(j, c));
    const ofScores = matrix(
      softmaxGrad(weights, ofWeights, queries, keys, false).map((x) => x * scale),
      0,
      queries,
      keys,
    );
    ofQuery.push(...product(queries, width, keys, ofScores, matrix(k, item, keys, width)));
    ofKey.push(...product(keys, width, queries, (j, i) => ofScores(i, j), matrix(q, item, queries, width)));
    ofValue.push(...product(keys, columns, queries, (j, i) => weights[i * keys + j]!, g));
  }
  return {
    queryGradient: Float64Array.from(ofQuery),
    keyGradient: Float64Array.from(ofKey),
    valueGradient: Float64Array.from(ofValue),
  };
}
