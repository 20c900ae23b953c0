/** Rows of a table by index, and its gradient. */

import { check } from "../../errors/errors";
import { carried } from "../../js/carried";
import { gather as gatherOnJs, scatterAdd as scatterAddOnJs } from "../../js/rows-by-index";
import { overSamples } from "../../tensor/batching";
import { record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import type { MapDType } from "../../values/dtype";
import type { Shape } from "../../values/shape";
import { computeIn } from "../cast";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { computeOn } from "../compute";
import { definePrimitive } from "../define-function";
import { checkIndexDType, checkIndices } from "./check-indices";

const GATHER = /* @__PURE__ */ carried("gather", gatherOnJs);
const SCATTER_ADD = /* @__PURE__ */ carried("scatterAdd", scatterAddOnJs);

/**
 * Rows of a table by index: table [rows, ...], indices i32 of any shape, result [...indices.shape, ...].
 * An index out of range throws where the device shares the host's memory (js, wasm, cpu), and gives NaN elsewhere,
 * and in replays of a step that computes it.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE; BAD_ARGUMENT for an index out of range
 */
export const gather = /* @__PURE__ */ definePrimitive(
  { torch: "a[b.long()] # torch.index_select(a, 0, b)", tensors: ["nm", "i32 k <n"] },
  (table: Tensor, indices: Tensor): Tensor => {
    const samples = overSamples(gather, table, indices);
    if (samples) return samples;
    checkTensor("gather", table, "table");
    checkTensor("gather", indices, "indices");
    const device = checkDevice("gather", [table, indices]);
    const hasRows = table.shape.length > 0;
    check(hasRows, "BAD_SHAPE", "gather", () => "the table needs rows, got a scalar.", "Pass [rows, width].");
    checkIndexDType("gather", indices);
    const compute = computeOn(device, table.dtype);
    if (table.dtype !== compute) return computeIn(compute, [table], table.dtype, (wide) => gather(wide!, indices));
    const [rows, ...rest] = table.shape as [number, ...number[]];
    const count = indices.size;
    checkIndices("gather", indices, rows);
    const width = rows === 0 ? 0 : table.size / rows;
    const output = Tensor.empty([...indices.shape, ...rest], compute, device);
    device.launch({
      kind: "gather",
      kernel: device.kernel({ kind: GATHER, dtype: compute }),
      table: table.memorySlice(),
      indices: indices.memorySlice(),
      output: output.memorySlice(),
      rows,
      width,
      count,
    });
    const { shape } = table;
    return record("gather", output, [table], [indices], (g, [held]) => [scatterRows(g, held!, shape)]);
  },
);

/** Adds rows up at their indices (i32), in a table of zeros: the adjoint of gather. */
export function scatterRows(source: Tensor, indices: Tensor, shape: Shape): Tensor {
  const { device } = source;
  const dtype = source.dtype as MapDType;
  const result = Tensor.empty(shape, dtype, device);
  const rows = shape[0]!;
  device.launch({
    kind: "scatterAdd",
    kernel: device.kernel({ kind: SCATTER_ADD, dtype }),
    source: source.memorySlice(),
    indices: indices.memorySlice(),
    output: result.memorySlice(),
    rows,
    width: rows === 0 ? 0 : result.size / rows,
    count: indices.size,
  });
  return record("scatterRows", result, [source], [indices], (g, [held]) => [gather(g, held!)]);
}
