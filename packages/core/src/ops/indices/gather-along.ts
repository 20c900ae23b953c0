/** Elements of an axis by index. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { normalizeAxis, showShape } from "../../values/shape";
import { cast } from "../cast";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { reshape, slice, transpose } from "../shape/shape";
import { checkIndices } from "./check-indices";
import { gather } from "./gather";
import { positions } from "./positions";

/**
 * torch.gather: along the axis, result[i, j, ..] = x[i, indices[i, j, ..], ..] (for axis 1). Indices have x's number of axes and, along
 * the others, at most its extents; the result has their shape. An index out of range is refused where the device shares the host's
 * memory, and gives NaN elsewhere,
 * and in replays of a step that computes it.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range
 * @example
 * const x = tensor([[1, 2], [3, 4]]);
 * gatherAlong(x, tensor([[1], [0]], { dtype: "i32" }), 1); // [[2], [3]]
 */
export function gatherAlong(x: Tensor, indices: Tensor, axis: number): Tensor {
  const where = "gatherAlong";
  checkTensor(where, x);
  checkTensor(where, indices, "indices");
  checkDevice(where, [x, indices]);
  const { dtype, shape } = indices;
  check(!isFloat(dtype), "BAD_DTYPE", where, () => `indices must be integers, got ${dtype}.`, 'Cast with to("i32").');
  const along = normalizeAxis(where, axis, x.shape.length);
  check(
    shape.length === x.shape.length && shape.every((extent, i) => i === along || extent <= x.shape[i]!),
    "BAD_SHAPE",
    where,
    () => `indices must fit x ${showShape(x.shape)} along all axes but ${along}, got ${showShape(shape)}.`,
    "Rows of a table are taken by gather(table, indices).",
  );
  return tidy(() => {
    const at = cast(indices, "i32");
    const extent = x.shape[along]!;
    checkIndices(where, indices, extent);
    const part = shape.reduce((rest, e, i) => (i === along || e === x.shape[i] ? rest : slice(rest, 0, e, i)), x);
    const [values, places] = [transpose(part, along, -1), transpose(at, along, -1)];
    const starts = positions([...places.shape.slice(0, -1), 1], x.device, extent);
    // An index beyond its row must not reach into another one.
    const inside = elementwise("mul", [elementwise("le", [0, places]), elementwise("less", [places, extent])]);
    const flat = elementwise("select", [inside, elementwise("add", [places, starts]), -1]);
    return transpose(gather(reshape(values, [values.size]), flat), along, -1);
  });
}
