/** Samples that lie in memory as rows of arrays. */
import { check, type DType, show, Tensor, type TypedArray, tensor } from "@opt/core";
import { type BatchedDataset, checkIndex, checkIndices, isCount } from "./dataset";
import { rowsOf } from "./rows";

/** An array of the host with its shape, as `parseIdx` gives it: sample i is row i. */
export interface HostArray {
  readonly data: TypedArray;
  readonly shape: readonly number[];
}

/** A sample or batch: one tensor for each column. */
export type Row<Columns extends readonly unknown[]> = { -readonly [K in keyof Columns]: Tensor };

interface Column {
  readonly data: TypedArray;
  readonly dtype: DType | undefined;
  /** Of one sample. */
  readonly shape: readonly number[];
  readonly size: number;
}

/**
 * Row i of each column is sample i, as PyTorch's `TensorDataset`. Columns are tensors of devices that are read at once (their values
 * are copied) or arrays of the host (which are not): bytes stay bytes until a batch is made. Batches are made on the device that `init` opened.
 *
 * @example
 * const data = new TensorDataset(tensor([[0, 0], [0, 1], [1, 0], [1, 1]]), { data: Int32Array.of(0, 1, 1, 0), shape: [4] });
 * const [x, y] = data.get(2);
 */
export class TensorDataset<const Columns extends readonly (Tensor | HostArray)[]>
  implements BatchedDataset<Row<Columns>, Row<Columns>>
{
  readonly length: number;
  readonly #columns: readonly Column[];

  /** @throws OptError BAD_ARGUMENT; BAD_SHAPE if columns differ in rows; NOT_SYNC for tensors of a device that is waited for */
  constructor(...columns: Columns) {
    check(columns.length > 0, "BAD_ARGUMENT", WHERE, () => "there must be a column, got none.", "Pass a tensor.");
    const rows = columns.map(countOf);
    this.length = rows[0]!;
    check(
      new Set(rows).size === 1,
      "BAD_SHAPE",
      WHERE,
      () => `columns must have equally many rows, got ${rows.join(" and ")}.`,
      "Sample i is row i of each of them.",
    );
    this.#columns = columns.map(columnOf);
  }

  get(index: number): Row<Columns> {
    checkIndex(WHERE, index, this.length);
    return this.#tensors(Int32Array.of(index), (shape) => shape);
  }

  batch(indices: Int32Array): Row<Columns> {
    checkIndices(WHERE, indices, this.length);
    return this.#tensors(indices, (shape) => [indices.length, ...shape]);
  }

  #tensors(indices: Int32Array, shaped: (shape: readonly number[]) => readonly number[]): Row<Columns> {
    return this.#columns.map(({ data, dtype, shape, size }) => {
      const rows = rowsOf(
        data,
        Int32Array.from(indices, (index) => index * size),
        size,
      );
      return tensor(rows, { shape: [...shaped(shape)], ...(dtype && { dtype }) });
    }) as Row<Columns>;
  }
}

const WHERE = "TensorDataset";

function countOf(column: Tensor | HostArray): number {
  const shape = (column as HostArray | null)?.shape;
  const hasRows = Array.isArray(shape) && shape.length > 0 && shape.every(isCount);
  const cure = Array.isArray(column)
    ? 'tensor(list), or for classes tensor(list, { dtype: "i32" })'
    : "Axis 0 counts the samples.";
  check(
    hasRows,
    "BAD_ARGUMENT",
    WHERE,
    () => `a column must be a tensor or { data, shape } of at least one axis, got ${show(column)}.`,
    cure,
  );
  return shape[0]!;
}

function columnOf(column: Tensor | HostArray): Column {
  const shape = column.shape.slice(1);
  const size = shape.reduce((product, extent) => product * extent, 1);
  if (column instanceof Tensor) return { data: column.dataSync(), dtype: column.dtype, shape, size };
  const { data } = column;
  const needed = size * column.shape[0]!;
  const isWhole = ArrayBuffer.isView(data) && (data as TypedArray).length === needed;
  check(
    isWhole,
    "BAD_SHAPE",
    WHERE,
    () => `data of shape [${column.shape}] must be a typed array of ${needed}, got ${show(data)}.`,
    "The product of the extents is the count.",
  );
  return { data, dtype: undefined, shape, size };
}
