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
  readonly #factor: number;
  readonly scores: TypedArray;

  constructor(
    private readonly dtype: ComputeDType,
    private readonly sizes: AttentionSizes,
  ) {
    this.#factor = dtype === "f32" ? Math.fround(sizes.scale) : sizes.scale;
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
    return x.map((value) => value * this.#factor);
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

/** Calls f for each row of item `index`, with the row's elements where the operand has them and in a dense matrix. */
function forRows(
  { strides, heads }: AttentionInputs,
  operand: number,
  index: number,
  [all, dense]: readonly [TypedArray, TypedArray],
  length: number,
  f: (row: TypedArray, ofDense: TypedArray) => void,
): void {
  const [outer, head, step] = strides[operand]!;
  const first = Math.floor(index / heads) * outer + (index % heads) * head;
  for (let r = 0; r * length < dense.length; r++) {
    const at = first + r * step;
    f(all.subarray(at, at + length), dense.subarray(r * length, (r + 1) * length));
  }
}

/** The matrices of item `index`, dense. */
function itemAt(dtype: ComputeDType, item: Item, launch: AttentionInputs, index: number) {
  const { queries, keys, width, columns } = launch;
  const gathered = (slice: AttentionInputs["query"], operand: number, rows: number, length: number) => {
    const dense = item.empty(rows * length);
    forRows(launch, operand, index, [elements(slice, dtype), dense], length, (row, ofDense) => ofDense.set(row));
    return dense;
  };
  return {
    query: gathered(launch.query, 0, queries, width),
    key: gathered(launch.key, 1, keys, width),
    value: gathered(launch.value, 2, keys, columns),
    gradientOf: (slice: AttentionInputs["query"]) => gathered(slice, 3, queries, columns),
  };
}

export function attention(dtype: ComputeDType, launch: LaunchArguments["attention"]): void {
  const { batch, queries, keys, columns } = launch;
  const item = new Item(dtype, launch);
  const all = elements(launch.output, dtype);
  const output = item.empty(queries * columns);
  for (let i = 0; i < batch; i++) {
    const { query, key, value } = itemAt(dtype, item, launch, i);
    item.weigh(item.scaled(query), key);
    item.multiply(PLAIN, item.scores, value, output, [queries, columns, keys]);
    forRows(launch, 3, i, [all, output], columns, (row, ofDense) => row.set(ofDense));
  }
}

/** With y the weights and s their scores: dvalue = y^T g, ds = y (g value^T - sum(y g value^T)), dkey = ds^T query and dquery = ds key. */
export function attentionGrad(dtype: ComputeDType, launch: LaunchArguments["attentionGrad"]): void {
  const { batch, queries, keys, width, columns } = launch;
  const item = new Item(dtype, launch);
  const ofWeights = item.empty(queries * keys);
  for (let i = 0; i < batch; i++) {
    const { query, key, value, gradientOf } = itemAt(dtype, item, launch, i);
    const [g, scaled] = [gradientOf(launch.gradient), item.scaled(query)];
    const [dq, dk, dv] = [query, key, value].map((x) => item.empty(x.length)) as [TypedArray, TypedArray, TypedArray];
    item.weigh(scaled, key);
    item.multiply(LEFT, item.scores, g, dv, [keys, columns, queries]);
    item.multiply(RIGHT, g, value, ofWeights, [queries, keys, columns]);
    item.rows(softmaxGradRows, item.scores, ofWeights);
    item.hide(0);
    item.multiply(LEFT, item.scores, scaled, dk, [keys, width, queries]);
    item.multiply(PLAIN, item.scores, key, dq, [queries, width, keys]);
    const gradients = [
      [launch.queryGradient, item.scaled(dq), width],
      [launch.keyGradient, dk, width],
      [launch.valueGradient, dv, columns],
    ] as const;
    for (const [k, [slice, dense, length]] of gradients.entries())
      forRows(launch, 4 + k, i, [elements(slice, dtype), dense], length, (row, ofDense) => row.set(ofDense));
  }
}
