/** Writing by positions, ranges, index tensors and masks: into a new tensor. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import { overSamples } from "../../tensor/batching";
import { record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { checkRange, flatten, type TensorData } from "../../values/literal";
import { type Shape, showShape } from "../../values/shape";
import { cast, clone, copyInto } from "../cast";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { gather } from "../indices/gather";
import { putRows, untouched } from "../indices/put-rows";
import { summed } from "../indices/scatter";
import { fill } from "../map";
import { cumsum } from "../reduce/cumsum";
import { sumTo } from "../reduce/reduce";
import { expand } from "../shape/extents";
import { cleared, type Region, taken, write } from "../shape/region";
import { reshape } from "../shape/shape";
import { isWhole } from "./at";
import { type Index, type ParsedIndex, type Pick, parseIndex } from "./parse-index";
import {
  checkCount,
  type Layout,
  layoutOf,
  leadingBatch,
  regionOfTable,
  resultShape,
  rowsOf,
  tableOf,
  withoutMasks,
} from "./picks";

export interface IndexPutOptions {
  /** Values are added to what is there, equal positions all together. Default false. */
  readonly accumulate?: boolean;
}

/**
 * x with a value where the index chooses, as a new tensor: torch.index_put. The index is a list as `at` takes it; the value broadcasts, and
 * is cast to x's dtype. Of equal positions the last counts. Gradients go to what stays of x and, as in PyTorch, to each element of the
 * value.
 *
 * @throws OptError BAD_SHAPE unless the value broadcasts; BAD_ARGUMENT, BAD_DTYPE, DEVICE_MISMATCH; NOT_SYNC for masks among other index
 * tensors where the device can't be read without waiting
 * @example
 * indexPut(zeros([2, 3]), [null, [1]], 5); // [[0, 5, 5], [0, 5, 5]]
 * indexPut(ones([3]), [tensor([0, 0], { dtype: "i32" })], 1, { accumulate: true }); // [3, 1, 1]
 */
export const indexPut = /* @__PURE__ */ definePrimitive(
  { torch: "a.index_put((b.long(),), c)", tensors: ["nm", "i32 1 <n", "m"], arguments: ["$a", ["$b"], "$c"] },
  (x: Tensor, index: Index | readonly Index[], value: Tensor | TensorData, options: IndexPutOptions = {}): Tensor => {
    const samples = overSamples(indexPut, x, index, value, options);
    if (samples) return samples;
    const where = "indexPut";
    checkTensor(where, x);
    checkOptions(where, options, { accumulate: "boolean" });
    const { accumulate = false } = options;
    return tidy(() => {
      const parsed = parseIndex(where, x, listOf(where, index));
      return withValue(where, x, parsed, valueFor(where, x, value), accumulate);
    });
  },
);

/** A single tensor, number or null stands for a list of one. @throws OptError BAD_ARGUMENT */
export function listOf(where: string, index: Index | readonly Index[]): readonly Index[] {
  if (Array.isArray(index)) return index;
  const isOne = index === null || typeof index === "number" || (index as unknown) instanceof Tensor;
  check(
    isOne,
    "BAD_ARGUMENT",
    where,
    () => `the index must be a list of positions, ranges, null and tensors, got ${show(index)}.`,
    "x[1:3] is [[1, 3]].",
  );
  return [index as Index];
}

/** The value as a tensor of x's dtype on its device. @throws OptError BAD_ARGUMENT, BAD_DTYPE, DEVICE_MISMATCH */
export function valueFor(where: string, x: Tensor, value: Tensor | TensorData): Tensor {
  const { dtype, device } = x;
  if (value instanceof Tensor) {
    checkTensor(where, value, "the value");
    checkDevice(where, [x, value]);
    return cast(value, dtype);
  }
  if (typeof value === "number" || typeof value === "boolean") {
    checkRange(where, [Number(value)], dtype);
    return fill([], Number(value), dtype, device);
  }
  const { elements, shape } = flatten(where, value, dtype);
  const result = Tensor.empty(shape, dtype, device);
  device.write(result.memorySlice(), new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength));
  return result;
}

/** `x` with `value`, of its dtype, where the index chooses. */
export function withValue(where: string, x: Tensor, parsed: ParsedIndex, value: Tensor, accumulate = false): Tensor {
  const { region, picks } = parsed;
  if (picks.length === 0) {
    const fitting = fitted(where, value, region.shape);
    return replaced(x, accumulate ? elementwise("add", [taken("at", x, region), fitting]) : fitting, region);
  }
  const part = isWhole(parsed) ? reshape(x, x.shape) : taken("at", x, region);
  const changed = withPicks(where, part, picks, value, accumulate);
  if (!isWhole(parsed)) return replaced(x, changed, region);
  return changed.storage === x.storage ? clone(changed) : changed;
}

/** x with a value in the region. */
function replaced(x: Tensor, value: Tensor, region: Region): Tensor {
  const output = Tensor.empty(x.shape, x.dtype, x.device);
  copyInto(x, output);
  write(value, output, region);
  return record("indexPut", output, [x, value], [], gradientsOf(value.shape, region));
}

/** Of what stays, and of the value. Made apart from the tensors, which a closure beside them would keep alive. */
export const gradientsOf =
  (shape: Shape, region: Region) =>
  (g: Tensor, _: readonly Tensor[], [needsX, needsValue]: readonly boolean[]): (Tensor | null)[] => [
    needsX ? cleared(g, region) : null,
    needsValue ? sumTo(taken("at", g, region), shape) : null,
  ];

/** The value in a shape that broadcasts to another, without axes of extent 1 too many, as PyTorch takes it. @throws OptError BAD_SHAPE */
export function fitted(where: string, value: Tensor, target: Shape): Tensor {
  const { shape } = value;
  const extra = Math.max(shape.length - target.length, 0);
  const own = shape.slice(extra);
  const offset = target.length - own.length;
  check(
    shape.slice(0, extra).every((extent) => extent === 1) &&
      own.every((extent, i) => extent === 1 || extent === target[offset + i]),
    "BAD_SHAPE",
    where,
    () => `the value must broadcast to ${showShape(target)}, which the index chooses, got ${showShape(shape)}.`,
    "Aligned at the end, its extents must be equal or 1.",
  );
  return extra === 0 ? value : reshape(value, own);
}

function withPicks(where: string, part: Tensor, picks: readonly Pick[], value: Tensor, accumulate: boolean): Tensor {
  const layout = layoutOf(part.shape, picks);
  const table = tableOf(part, layout);
  const [first] = picks;
  const isMask = picks.length === 1 && first!.tensor.dtype === "bool";
  const changed = isMask
    ? maskedRows(where, table, first!.tensor, value, layout, accumulate)
    : pickedRows(where, table, picks, value, layout, accumulate);
  return regionOfTable(changed, layout);
}

function pickedRows(
  where: string,
  table: Tensor,
  picks: readonly Pick[],
  value: Tensor,
  layout: Layout,
  accumulate: boolean,
): Tensor {
  const rows = rowsOf(where, withoutMasks(where, picks), layout);
  const shape = resultShape(rows.shape, layout);
  const values = leadingBatch(expand(fitted(where, value, shape), shape), rows.shape.length, layout);
  const [flat, list] = [reshape(values, [rows.size, ...layout.rest]), reshape(rows, [rows.size])];
  if (!accumulate) return putRows(table, list, flat);
  return elementwise("add", [table, summed(flat, list, table.shape)]);
}

/** A mask alone is no list of positions: so no device waits, and compiled functions take it. */
function maskedRows(
  where: string,
  table: Tensor,
  mask: Tensor,
  value: Tensor,
  layout: Layout,
  accumulate: boolean,
): Tensor {
  const { rest, before } = layout;
  const behind = rest.length - before;
  const count = value.shape.at(-1 - behind) ?? 1;
  const isOne = value.shape.length <= behind || count === 1;
  const shape = resultShape([isOne ? 1 : count], layout);
  if (!isOne) checkCount(where, mask, count);
  const values = leadingBatch(expand(fitted(where, value, shape), shape), 1, layout);
  if (values.size === 0) return untouched(table, values);
  const isChosen = reshape(mask, [mask.size, ...rest.map(() => 1)]);
  const from = isOne ? values : gather(values, numbersWithin(mask, count));
  const put = accumulate ? elementwise("add", [table, from]) : from;
  return elementwise("select", [isChosen, put, table]);
}

/** For each element of a mask how many before it are chosen, less than `count`: the number of its value, if it is chosen. */
function numbersWithin(mask: Tensor, count: number): Tensor {
  const before = elementwise("sub", [cumsum(reshape(mask, [mask.size]), 0), 1]);
  return elementwise("minimum", [elementwise("maximum", [before, 0]), count - 1]);
}
