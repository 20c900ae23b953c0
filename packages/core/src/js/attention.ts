/** Attention and its gradient, item by item: the words of its ops, one by one. */
import type { AttentionInputs, AttentionSizes, LaunchArguments } from "../backend/spec";
import { softmaxGradRows, softmaxRows } from "../rule/row-programs/softmax";
import type { RowProgram } from "../rule/rows/row-program";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { multiply } from "./matmul";
import { elements } from "./memory";
import { rowsFunction } from "./rows";

const PLAIN = { transposeA: false, transposeB: false };
const LEFT = { transposeA: true, transposeB: false };
const RIGHT = { transposeA: false, transposeB: true };

/** What both kernels do with the matrices of an item. */
class Item {
  private readonly factor: number;
  readonly scores: TypedArray;

  constructor(
    private readonly dtype: ComputeDType,
    private readonly sizes: AttentionSizes,
  ) {
    this.factor = dtype === "f32" ? Math.fround(sizes.scale) : sizes.scale;
    this.scores = this.empty(sizes.queries * sizes.keys);
  }

  empty(size: number): TypedArray {
    return this.dtype === "f32" ? new Float32Array(size) : new Float64Array(size);
  }

  multiply(form: typeof PLAIN, A: TypedArray, B: TypedArray, C: TypedArray, [m, n, k]: readonly number[]): void {
    const sizes = { batch: 1, m: m!, n: n!, k: k!, strideA: 0, strideB: 0 };
    multiply({ dtype: this.dtype, ...form }, A, B, C, sizes);
  }

  scaled(x: TypedArray): TypedArray {
    return x.map((value) => value * this.factor);
  }

  /** A row program over the rows of scores. */
  rows(program: RowProgram, ...inputs: readonly TypedArray[]): void {
    const { queries: rows, keys: length } = this.sizes;
    const run = rowsFunction(program, this.dtype);
    run({ inputs, outputs: [this.scores], scalars: [], rows, length, ignoreIndex: -1 });
  }

  /** Of keys that a query does not see. */
  hide(value: number): void {
    const { queries, keys, causal } = this.sizes;
    for (let i = 0; causal && i < queries; i++)
      this.scores.fill(value, Math.min(i * keys + i + 1, (i + 1) * keys), (i + 1) * keys);
  }

  /** What each query takes of each key's value. */
  weigh(query: TypedArray, key: TypedArray): void {
    const { queries, keys, width } = this.sizes;
    this.multiply(RIGHT, query, key, this.scores, [queries, keys, width]);
    this.hide(Number.NEGATIVE_INFINITY);
    this.rows(softmaxRows, this.scores);
  }
}

/** The matrices of each item: `rows` of an item and their length. */
function itemsOf(dtype: ComputeDType, { batch, queries, keys, width, columns, ...launch }: AttentionInputs) {
  const of = (slice: AttentionInputs["query"], size: number) => {
    const all = elements(slice, dtype);
    return Array.from({ length: batch }, (_, i) => all.subarray(i * size, (i + 1) * size));
  };
  const sizes = {
    ofQueries: queries * width,
    ofKeys: keys * width,
    ofValues: keys * columns,
    ofResults: queries * columns,
  };
  const { query, key, value } = launch;
  return {
    of,
    ...sizes,
    query: of(query, sizes.ofQueries),
    key: of(key, sizes.ofKeys),
    value: of(value, sizes.ofValues),
  };
}

export function attention(dtype: ComputeDType, launch: LaunchArguments["attention"]): void {
  const { queries, keys, columns } = launch;
  const item = new Item(dtype, launch);
  const { of, ofResults, query, key, value } = itemsOf(dtype, launch);
  for (const [i, output] of of(launch.output, ofResults).entries()) {
    item.weigh(item.scaled(query[i]!), key[i]!);
    item.multiply(PLAIN, item.scores, value[i]!, output, [queries, columns, keys]);
  }
}

/** With y the weights and s their scores: dvalue = y^T g, ds = y (g value^T - sum(y g value^T)), dkey = ds^T query and dquery = ds key. */
export function attentionGrad(dtype: ComputeDType, launch: LaunchArguments["attentionGrad"]): void {
  const { queries, keys, width, columns } = launch;
  const item = new Item(dtype, launch);
  const { of, ofResults, ofQueries, ofKeys, ofValues, query, key, value } = itemsOf(dtype, launch);
  const dq = of(launch.queryGradient, ofQueries);
  const dk = of(launch.keyGradient, ofKeys);
  const dv = of(launch.valueGradient, ofValues);
  const ofWeights = item.empty(queries * keys);
  for (const [i, g] of of(launch.gradient, ofResults).entries()) {
    const scaled = item.scaled(query[i]!);
    item.weigh(scaled, key[i]!);
    item.multiply(LEFT, item.scores, g, dv[i]!, [keys, columns, queries]);
    item.multiply(RIGHT, g, value[i]!, ofWeights, [queries, keys, columns]);
    item.rows(softmaxGradRows, item.scores, ofWeights);
    item.hide(0);
    item.multiply(LEFT, item.scores, scaled, dk[i]!, [keys, width, queries]);
    item.multiply(PLAIN, item.scores, key[i]!, dq[i]!, [queries, width, keys]);
    dq[i]!.set(item.scaled(dq[i]!));
  }
}
