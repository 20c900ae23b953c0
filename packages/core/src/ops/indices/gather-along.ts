/** Elements of an axis by index. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { axisOfElements, type Shape, showShape } from "../../values/shape";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { reshape } from "../shape/shape";
import { checkIndexDType, checkIndices } from "./check-indices";
import { flatPlaces } from "./flat-places";
import { gather } from "./gather";

/**
 * torch.gather: along the axis, result[i, j, ..] = x[i, indices[i, j, ..], ..] (for axis 1). Indices have x's number of axes and, along
 * the others, at most its extents; the result has their shape. An index out of range throws where the device shares the host's
 * memory, and gives NaN elsewhere,
 * and in replays of a step that computes it.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range
 * @example
 * const x = tensor([[1, 2], [3, 4]]);
 * gatherAlong(x, tensor([[1], [0]], { dtype: "i32" }), 1); // [[2], [3]]
 */
export const gatherAlong = /* @__PURE__ */ definePrimitive(
  { torch: "a.gather($0, b.long())", tensors: ["nm", "i32 nm <m"], arguments: [1] },
  (x: Tensor, indices: Tensor, axis: number): Tensor => {
    const samples = overSamples(gatherAlong, x, indices, axis);
    if (samples) return samples;
    const where = "gatherAlong";
    checkTensor(where, x);
    checkTensor(where, indices, "indices");
    checkDevice(where, [x, indices]);
    checkIndexDType(where, indices);
    const along = axisOfElements(where, axis, x.shape);
    // A number is a row of one, as in PyTorch.
    const [from, to] = [x.shape, indices.shape].map((shape) => (shape.length === 0 ? [1] : shape)) as [Shape, Shape];
    check(
      to.length === from.length && to.every((extent, i) => i === along || extent <= from[i]!),
      "BAD_SHAPE",
      where,
      () => `indices must fit x ${showShape(x.shape)} along all axes but ${along}, got ${showShape(indices.shape)}.`,
      "Rows of a table are taken by gather(table, indices).",
    );
    return tidy(() => {
      checkIndices(where, indices, from[along]!);
      const places = flatPlaces(reshape(indices, to), from, along);
      return reshape(gather(reshape(x, [x.size]), places), indices.shape);
    });
  },
);
