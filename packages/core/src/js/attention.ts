/** Attention and its gradient, a row of scores at a time. */
import type { AttentionInputs, AttentionSizes, LaunchArguments } from "../backend/spec";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { elements } from "./memory";

/** The scores of one query (row `i` of all), of the keys that it sees. */
function scoresOf({ queries, keys, width, scale, causal }: AttentionSizes, q: TypedArray, k: TypedArray, i: number) {
  const seen = causal ? Math.min(keys, (i % queries) + 1) : keys;
  const first = Math.floor(i / queries) * keys;
  // As precise as the sums that forward keeps: of large scores backward would else meet others.
  const scores = q instanceof Float32Array ? new Float32Array(seen) : new Float64Array(seen);
  for (let j = 0; j < seen; j++) {
    let sum = 0;
    for (let d = 0; d < width; d++) sum += q[i * width + d]! * k[(first + j) * width + d]!;
    scores[j] = width === 0 ? 0 : sum * scale;
  }
  return { scores, first };
}

function arraysOf(dtype: ComputeDType, { query, key, value }: AttentionInputs) {
  return [elements(query, dtype), elements(key, dtype), elements(value, dtype)] as const;
}

export function attention(dtype: ComputeDType, launch: LaunchArguments["attention"]): void {
  const { batch, queries, columns } = launch;
  const [q, k, v] = arraysOf(dtype, launch);
  const output = elements(launch.output, dtype);
  const logSums = elements(launch.logSums, dtype);
  for (let i = 0; i < batch * queries; i++) {
    const { scores, first } = scoresOf(launch, q, k, i);
    let max = Number.NEGATIVE_INFINITY;
    for (const score of scores) max = Math.max(max, score);
    let sum = 0;
    const total = new Float64Array(columns);
    for (const [j, score] of scores.entries()) {
      const weight = Math.exp(score - max);
      sum += weight;
      for (let c = 0; c < columns; c++) total[c]! += weight * v[(first + j) * columns + c]!;
    }
    for (let c = 0; c < columns; c++) output[i * columns + c] = scores.length === 0 ? 0 : total[c]! / sum;
    logSums[i] = max + Math.log(sum);
  }
}

/** With w the weights and D = sum(g y) by row: dvalue = w^T g, dscores = w (g value^T - D), and through the scores to query and key. */
export function attentionGrad(dtype: ComputeDType, launch: LaunchArguments["attentionGrad"]): void {
  const { batch, queries, keys, width, columns, scale } = launch;
  const [q, k, v] = arraysOf(dtype, launch);
  const y = elements(launch.output, dtype);
  const g = elements(launch.gradient, dtype);
  const logSums = elements(launch.logSums, dtype);
  const dq = elements(launch.queryGradient, dtype);
  const dk = new Float64Array(batch * keys * width);
  const dv = new Float64Array(batch * keys * columns);
  for (let i = 0; i < batch * queries; i++) {
    const { scores, first } = scoresOf(launch, q, k, i);
    let along = 0;
    for (let c = 0; c < columns; c++) along += g[i * columns + c]! * y[i * columns + c]!;
    const ofQuery = new Float64Array(width);
    for (const [j, score] of scores.entries()) {
      const weight = Math.exp(score - logSums[i]!);
      let sum = 0;
      for (let c = 0; c < columns; c++) {
        const at = (first + j) * columns + c;
        sum += g[i * columns + c]! * v[at]!;
        dv[at]! += weight * g[i * columns + c]!;
      }
      const ofScore = weight * (sum - along) * scale;
      for (let d = 0; d < width; d++) {
        const at = (first + j) * width + d;
        ofQuery[d]! += ofScore * k[at]!;
        dk[at]! += ofScore * q[i * width + d]!;
      }
    }
    dq.set(ofQuery, i * width);
  }
  elements(launch.keyGradient, dtype).set(dk);
  elements(launch.valueGradient, dtype).set(dv);
}
