/** The largest value over axes, and where it stands. */

import { tidy } from "../device/scope";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { noGrad, record } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { isFloat } from "../values/dtype";
import { showShape, sizeOf } from "../values/shape";
import { cast, computeIn } from "./cast";
import { checkTensor } from "./check-tensor";
import { computeOn } from "./compute";
import { elementwise } from "./elementwise";
import { type Axes, launchReduce, type Reduced, reducedShape, sum } from "./reduce";
import { reshape } from "./shape";

/** Largest value over axes; equal largest share the gradient. */
export function maxOver(x: Tensor, axis?: Axes, keepDim = false): Tensor {
  checkTensor("max", x);
  const compute = computeOn(x.device, isFloat(x.dtype) ? x.dtype : "i32");
  if (x.dtype !== compute) return computeIn(compute, [x], x.dtype, (wide) => maxOver(wide!, axis, keepDim));
  const reduced = reducedShape("max", x, axis, keepDim);
  checkNotEmpty("max", x, reduced);
  const output = launchReduce("max", x, reduced);
  const { kept } = reduced;
  return record("max", output, [x], [x, output], (g, [input, largest]) => {
    const isBelow = elementwise("less", [input!, reshape(largest!, kept)]);
    const isLargest = elementwise("sub", [1, cast(isBelow, g.dtype)]);
    const share = elementwise("div", [reshape(g, kept), sum(isLargest, reduced.axes, true)]);
    return [elementwise("mul", [isLargest, share])];
  });
}

/** Index (i32) of the largest value along an axis, or in the flattened tensor. */
export function argmax(x: Tensor, axis?: number, keepDim = false): Tensor {
  checkTensor("argmax", x);
  const isOne = !Array.isArray(axis);
  check(isOne, "BAD_ARGUMENT", "argmax", () => `takes one axis, got ${show(axis)}.`, "Reshape what is one to you.");
  const compute = computeOn(x.device, isFloat(x.dtype) ? x.dtype : "i32");
  const reduced = reducedShape("argmax", x, axis, keepDim);
  checkNotEmpty("argmax", x, reduced);
  return noGrad(() => tidy(() => launchReduce("argmax", cast(x, compute), reduced)));
}

function checkNotEmpty(where: string, x: Tensor, { axes }: Reduced): void {
  check(
    sizeOf(axes.map((axis) => x.shape[axis]!)) > 0,
    "BAD_SHAPE",
    where,
    () => `nothing has no largest element, got shape ${showShape(x.shape)}.`,
    "Check for empty tensors first.",
  );
}
