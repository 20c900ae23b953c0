/** Gradients that have only some of a table's rows. */
import type { Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import type { ScalarSource } from "../device/scalar-source";
import { keep, tidy } from "../device/scope";
import { check, OptError } from "../errors/errors";
import { show } from "../errors/show";
import { cast, checkTensor, clone, concat, copyInto, elementwise, fill, fillInPlace } from "../ops";
import { checkDevice } from "../ops/check-device";
import { checkIndexDType, checkIndices } from "../ops/indices/check-indices";
import { scatterRows } from "../ops/indices/gather";
import { launchMap } from "../ops/map";
import { decode, readBytesSync } from "../tensor/read";
import { Storage } from "../tensor/storage";
import { noGrad } from "../tensor/tape";
import { type SparseGradient, Tensor } from "../tensor/tensor";
import { computeDType, type DType, isFloat } from "../values/dtype";
import { type Shape, sameShape, showShape } from "../values/shape";
import { firstPlaces, WHERE_COUNTED } from "./first-places";
import { rowSlices } from "./row-slices";

/**
 * A tensor that stores some of its rows; the others are 0. `gatherSparse` and sparse embeddings give a table such a gradient.
 * Optimizers, clipping, loss scaling and backward take it. Other ops throw UNSUPPORTED: pass them `toDense()`.
 */
export class RowSparse extends Tensor {
  /** @internal */
  override readonly sparse: SparseGradient = this;
  /** @internal */
  place: Tensor;
  #content: Tensor;
  /** The version of the indices since which there are no rows. */
  #emptiedAt = -1;

  /** @internal Takes over the tensors: i32 [n], and [n, ...]. `isMerged`: no row comes twice. */
  constructor(
    indices: Tensor,
    values: Tensor,
    shape: Shape,
    private isMerged: boolean,
  ) {
    super(Storage.allocate(values.device, 0), 0, shape, values.dtype);
    this.place = keep(indices);
    this.#content = keep(values);
  }

  static override [Symbol.hasInstance](value: unknown): value is RowSparse {
    return Tensor[Symbol.hasInstance](value) && (value as Tensor).sparse !== undefined;
  }

  /**
   * The numbers of the rows, i32 [n]. A row may come more than once. -1 marks what is no row, until `coalesce`: the padding's, and one that was
   * added to an earlier one. Its values are 0.
   */
  get indices(): Tensor {
    this.checkAlive();
    return this.place;
  }

  /** The rows, [n, ...]. */
  get values(): Tensor {
    this.checkAlive();
    return this.#content;
  }

  /**
   * The same with ascending indices, each once: rows that come more than once are added up in their order. As PyTorch's `coalesce`.
   *
   * @throws OptError NOT_SYNC if the host cannot look at the indices without waiting, UNSUPPORTED in a compiled function
   */
  coalesce(): RowSparse {
    const { device, dtype, shape } = this;
    const bytes = readBytesSync(this.indices);
    return alone(() => {
      const list = decode(this.place, bytes);
      const rows = Int32Array.from(new Set(list))
        .filter((row) => row >= 0)
        .sort();
      const placeOf = new Map(Array.from(rows, (row, i) => [row, i]));
      const places = Int32Array.from(list, (row) => placeOf.get(row) ?? -1);
      const [indices, target] = [rows, places].map((numbers) => {
        const tensor = Tensor.empty([numbers.length], "i32", device);
        device.write(tensor.memorySlice(), new Uint8Array(numbers.buffer));
        return tensor;
      }) as [Tensor, Tensor];
      const values = scatterRows(wide(this.#content), target, [rows.length, ...shape.slice(1)]);
      return new RowSparse(indices, cast(values, dtype), shape, true);
    });
  }

  /** The same numbers in a dense tensor: rows that come more than once are added up in their order. */
  toDense(): Tensor {
    return alone(() => cast(scatterRows(wide(this.values), this.place, this.shape), this.dtype));
  }

  /** @internal */
  merged(): Tensor {
    this.checkAlive();
    if (!this.isMerged) this.#become(alone(() => mergedRows(this.place, this.#content, this.dtype)));
    return this.#content;
  }

  /** @internal */
  numbers(lazy: boolean): Tensor {
    return lazy && this.device.backend.sharesMemory ? this.merged() : this.toDense();
  }

  /** @internal If the host does not know the rows, all are stepped, and those that are not there are put back. */
  launch(launch: Launch<"rule">, scalarSource: ScalarSource, written: readonly Tensor[]): void {
    const { device, place, shape } = this;
    if (device.backend.sharesMemory) {
      device.launch({ ...launch, rows: place.memorySlice(), slicesOfRows: rowSlices }, scalarSource);
      return;
    }
    const before = written.map(clone);
    device.launch(launch, scalarSource);
    written.forEach((after, i) => {
      const compute = computeDType(after.dtype);
      const counts = scatterRows(fill([place.size], 1, compute, device), place, [shape[0]!]);
      const column = counts.reshape(shape.map((extent, axis) => (axis === 0 ? extent : 1)));
      const inputs = [column, cast(after, compute), cast(before[i]!, compute)];
      copyInto(launchMap(WHERE_COUNTED, compute, inputs, [], shape), after);
    });
  }

  private get isEmptied(): boolean {
    return this.#emptiedAt === this.place.storage.version;
  }

  /** @internal */
  emptied(): Tensor {
    noGrad(() => fillInPlace(this.indices, -1)); // in place, as dense ones are cleared
    this.isMerged = true;
    this.#emptiedAt = this.place.storage.version;
    return this.#content;
  }

  /** @internal In the order in which backward passes add: what each of them left of a row is added to what earlier ones left. */
  plus(a: Tensor, b: Tensor): Tensor {
    return alone(() => {
      if (!a.sparse || !b.sparse)
        return elementwise("add", [a.sparse?.numbers(false) ?? a, b.sparse?.numbers(false) ?? b]);
      const [first, second] = [a, b] as [RowSparse, RowSparse];
      if (first.isEmptied) return second.alias();
      const values = concat([first.merged(), second.merged()]);
      return new RowSparse(concat([first.place, second.place]), values, a.shape, false);
    });
  }

  #become({ rows, values }: MergedRows): void {
    this.place.dispose();
    this.#content.dispose();
    this.place = keep(rows);
    this.#content = keep(values);
    this.isMerged = true;
  }

  /** @internal Ops that know only dense tensors come here. @throws OptError UNSUPPORTED */
  override memorySlice(): Slice {
    this.checkAlive();
    throw new OptError("UNSUPPORTED", "RowSparse", "row-sparse tensors hold only some rows.", "Use toDense().");
  }

  /** @internal */
  override alias(shape: Shape = this.shape): Tensor {
    this.checkAlive();
    if (!sameShape(shape, this.shape)) this.memorySlice();
    return new RowSparse(this.place.alias(), this.#content.alias(), this.shape, this.isMerged);
  }

  override dispose(): void {
    super.dispose();
    this.place.dispose();
    this.#content.dispose();
  }

  override toString(): string {
    return super.toString().replace("Tensor", `RowSparse of ${this.place.size} rows,`);
  }
}

const wide = (x: Tensor) => cast(x, computeDType(x.dtype));
const alone = <Result>(body: () => Result): Result => noGrad(() => tidy(body));

export interface MergedRows {
  /** i32 [n]: a row where it came first, else -1. */
  readonly rows: Tensor;
  /** `[n, ...]`: its sum there, 0 elsewhere: norms and clipping take all of them. */
  readonly values: Tensor;
}

/** Rows that come more than once, added up in their order where they came first. 16 bits are summed in float32. */
export function mergedRows(indices: Tensor, values: Tensor, dtype: DType): MergedRows {
  if (indices.size === 0) return { rows: clone(indices), values: cast(clone(values), dtype) };
  const { places, rows } = firstPlaces(indices);
  return { rows, values: cast(scatterRows(wide(values), places, values.shape), dtype) };
}

/**
 * A gradient of a table of `shape` with only the rows at `indices` (integers [n]). Rows of `values` [n, ...] with the same index are
 * added. Assign it to `grad`. Both are copied: what is set in them later does not reach it.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range where the host shares the device's memory
 * @example
 * const table = parameter([[1, 2], [3, 4], [5, 6]]);
 * table.grad = rowSparse(tensor([2, 0], { dtype: "i32" }), tensor([[1, 1], [2, 2]]), table.shape);
 * table.grad.toString(); // RowSparse of 2 rows, f32 [3, 2] on js
 */
export function rowSparse(indices: Tensor, values: Tensor, shape: Shape): RowSparse {
  const where = "rowSparse";
  checkTensor(where, indices, "indices");
  checkTensor(where, values, "values");
  checkDevice(where, [indices, values]);
  checkIndexDType(where, indices);
  check(
    isFloat(values.dtype),
    "BAD_DTYPE",
    where,
    () => `values must be floating-point, got ${values.dtype}.`,
    `Use dtype: "f32".`,
  );
  const isShape =
    Array.isArray(shape) && shape.length > 0 && shape.every((extent) => Number.isInteger(extent) && extent >= 0);
  check(isShape, "BAD_SHAPE", where, () => `shape must be that of a table, got ${show(shape)}.`, "Pass table.shape.");
  check(
    indices.shape.length === 1,
    "BAD_SHAPE",
    where,
    () => `indices must be a list, got shape ${showShape(indices.shape)}.`,
    "Reshape them, and the values with them.",
  );
  const expected = [indices.size, ...shape.slice(1)];
  check(
    sameShape(values.shape, expected),
    "BAD_SHAPE",
    where,
    () => `values must have shape ${showShape(expected)}, got ${showShape(values.shape)}.`,
    "One row for each index.",
  );
  const own = alone(() => {
    const at = clone(indices);
    checkIndices(where, indices, shape[0]!);
    return { at, content: clone(values) };
  });
  const gradient = new RowSparse(own.at, own.content, [...shape], false);
  gradient.isMadeByHand = true;
  return gradient;
}
