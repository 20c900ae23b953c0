/** Rows of a table by index, whose gradient of the table has only these rows. */

import { tidy } from "../device/scope";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { cast, checkTensor, elementwise, gather } from "../ops";
import { eq } from "../ops/elementwise/logic";
import { scatterRows } from "../ops/indices/gather";
import { isTaping, noGrad, record } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { computeDType } from "../values/dtype";
import { mergedRows, RowSparse } from "./row-sparse";

export interface GatherSparseOptions {
  /** The row whose gradient is left out. Default: none. */
  readonly paddingIdx?: number;
}

/**
 * As `gather`: table [rows, ...], indices i32 of any shape, result [...indices.shape, ...]. The gradient that backward gives the table is
 * `RowSparse`; with `createGraph` it is dense, and can be differentiated.
 *
 * @throws OptError UNSUPPORTED for a table that was computed: dense ops were to follow in backward; further as `gather`
 */
export function gatherSparse(table: Tensor, indices: Tensor, options: GatherSparseOptions = {}): Tensor {
  const where = "gatherSparse";
  checkTensor(where, table, "table");
  checkTensor(where, indices, "indices");
  checkOptions(where, options, { paddingIdx: "number" });
  check(
    table.node === null,
    "UNSUPPORTED",
    where,
    () => `the table must be a leaf, got the result of ${table.node!.name}.`,
    "Use gather, whose gradient is dense.",
  );
  const output = noGrad(() => gather(table, indices));
  const at = noGrad(() => rowsWithGradient(indices, options));
  const { dtype, shape } = table;
  const recorded = record(where, output, [table], [at], (g, [held]) => {
    const wide = cast(g, computeDType(dtype));
    if (isTaping()) return [cast(scatterRows(wide, held!, shape), dtype)];
    const { rows, values } = tidy(() =>
      mergedRows(held!.reshape([held!.size]), wide.reshape([held!.size, ...shape.slice(1)]), dtype),
    );
    return [new RowSparse(rows, values, shape, true)];
  });
  if (at !== indices) at.dispose(); // the tape holds its own
  return recorded;
}

/** -1, which stands for no row, in place of the padding's. */
function rowsWithGradient(rows: Tensor, { paddingIdx }: GatherSparseOptions): Tensor {
  if (paddingIdx === undefined) return rows;
  return tidy(() => elementwise("select", [eq(rows, paddingIdx), -1, rows]));
}
