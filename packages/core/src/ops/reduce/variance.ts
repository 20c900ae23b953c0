/** How far values spread: variance and standard deviation over axes. */

import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { sizeOf } from "../../values/shape";
import { computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { root } from "../elementwise/root";
import { type Axes, mean, reducedShape, sum } from "./reduce";

export interface VarianceOptions {
  /** What is taken off the count: 1 for an estimate from samples, 0 for the mean of the squares. Default 1. */
  readonly correction?: number;
  /** Keeps reduced axes with extent 1. Default false. */
  readonly keepDim?: boolean;
}

/**
 * sum((x - mean)^2) / (count - correction) over the given axes, or over all. NaN where no more than `correction` elements are.
 * Integers give f32. As a method `x.var(axis)`: `var` is no name for a function in JavaScript.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * variance(tensor([1, 2, 4])); // 7/3
 */
export const variance = /* @__PURE__ */ definePrimitive(
  { torch: "a.var($0)", tensors: ["n5"], arguments: [1] },
  (x: Tensor, axis?: Axes, options: VarianceOptions = {}): Tensor => {
    return spread("var", x, axis, options, (squares) => squares);
  },
);

/**
 * The square root of the variance. Its gradient is 0 where it is 0.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * std(tensor([1, 2, 3])); // 1
 */
export const std = /* @__PURE__ */ definePrimitive(
  { torch: "a.std($0)", tensors: ["n5"], arguments: [1] },
  (x: Tensor, axis?: Axes, options: VarianceOptions = {}): Tensor => {
    return spread("std", x, axis, options, root);
  },
);

function spread(
  where: string,
  x: Tensor,
  axis: Axes,
  options: VarianceOptions,
  last: (squares: Tensor) => Tensor,
): Tensor {
  checkTensor(where, x);
  check(
    typeof options !== "boolean",
    "BAD_ARGUMENT",
    where,
    () => `the second place takes options, got ${show(options)}.`,
    "Write { keepDim: true }, or { correction: 0 } for PyTorch's unbiased=False.",
  );
  checkOptions(where, options, { correction: "number", keepDim: "boolean" });
  const { correction = 1, keepDim = false } = options;
  checkValue(correction >= 0, where, "correction", ">= 0", correction, "Use 1.");
  const { axes } = reducedShape(where, x, axis, keepDim);
  const dtype = isFloat(x.dtype) ? x.dtype : "f32";
  // The squares of what float32 holds leave its range.
  const compute = x.device.backend.dtypes.includes("f64") ? "f64" : computeDType(dtype);
  return computeIn(compute, [x], dtype, (wide) => {
    const centered = elementwise("sub", [wide!, mean(wide!, axes, true)]);
    const squares = sum(elementwise("mul", [centered, centered]), axes, keepDim);
    return last(elementwise("div", [squares, Math.max(sizeOf(axes.map((a) => x.shape[a]!)) - correction, 0)]));
  });
}
