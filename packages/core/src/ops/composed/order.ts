/** Values by their order. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { axisOfElements } from "../../values/shape";
import { defineFunction } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { sort } from "../reduce/sort";
import { squeeze } from "../shape/extents";
import { reshape, slice } from "../shape/shape";

const placed = (sorted: Tensor, place: number, axis: number, keepDim: boolean): Tensor => {
  const part = slice(sorted, place, place + 1, axis);
  return keepDim ? part : squeeze(part, axis);
};

/**
 * The value that a share `q` of the others along an axis is below, between two neighbours as near as it is to each. Without an axis, of all
 * elements.
 *
 * @throws OptError BAD_ARGUMENT for a share out of 0 to 1; BAD_DTYPE for integers; BAD_SHAPE for nothing
 * @example
 * quantile(tensor([1, 2, 3, 4]), 0.5); // 2.5
 */
export const quantile = /* @__PURE__ */ defineFunction(
  { name: "quantile", torch: "torch.quantile(a, 0.3, 1)", tensors: ["n5"], arguments: [0.3, 1] },
  (x: Tensor, q: number, axis?: number, keepDim = false): Tensor => {
    const isShare = typeof q === "number" && q >= 0 && q <= 1;
    checkValue(isShare, "quantile", "q", "a number from 0 to 1", q, "For example 0.5.");
    check(isFloat(x.dtype), "BAD_DTYPE", "quantile", () => `needs floats, got ${x.dtype}.`, 'Use x.to("f32").');
    if (axis === undefined) return quantile(reshape(x, [x.size]), q, 0, keepDim);
    const along = axisOfElements("quantile", axis, x.shape);
    const last = (x.shape[along] ?? 1) - 1;
    const place = q * last;
    const below = Math.floor(place);
    const { values } = sort(x, along);
    const low = placed(values, below, along, keepDim);
    if (below === place) return low;
    const high = placed(values, below + 1, along, keepDim);
    return elementwise("add", [low, elementwise("mul", [elementwise("sub", [high, low]), place - below])]);
  },
);

/**
 * The middle value along an axis, of two the lower one; without an axis of all elements.
 *
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE for nothing
 * @example
 * median(tensor([3, 1, 2, 5])); // 2
 */
export const median = /* @__PURE__ */ defineFunction(
  { name: "median", torch: "torch.median(a, 1).values", tensors: ["n5"], arguments: [1] },
  (x: Tensor, axis?: number, keepDim = false): Tensor => {
    if (axis === undefined) return median(reshape(x, [x.size]), 0, keepDim);
    const along = axisOfElements("median", axis, x.shape);
    const extent = x.shape[along] ?? 1;
    return placed(sort(x, along).values, (extent - 1) >> 1, along, keepDim);
  },
);
