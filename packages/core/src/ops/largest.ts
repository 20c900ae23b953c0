/** The largest value over axes, and where it stands. */

import { computeDType, isFloat } from "../dtype";
import { check } from "../errors";
import { tidy } from "../scope";
import { showShape, sizeOf } from "../shape";
import { noGrad, record } from "../tape";
import type { Tensor } from "../tensor";
import { cast, computeIn } from "./cast";
import { elementwise } from "./elementwise";
import { type Axes, launchReduce, type Reduced, reducedShape, sum } from "./reduce";
import { reshape } from "./shape";

/** Largest value over axes; equal largest share the gradient. */
export function maxOver(x: Tensor, axis?: Axes, keepDim = false): Tensor {
  const compute = computeDType(isFloat(x.dtype) ? x.dtype : "i32");
  if (x.dtype !== compute) return computeIn(compute, [x], x.dtype, (wide) => maxOver(wide!, axis, keepDim));
  const reduced = reducedShape("max", x, axis);
  checkNotEmpty("max", x, reduced);
  const output = launchReduce("max", x, reduced, keepDim ? reduced.kept : reduced.dropped);
  const { kept } = reduced;
  return record("max", output, [x], [x, output], (g, [input, largest]) => {
    const isBelow = elementwise("less", [input!, reshape(largest!, kept)]);
    const isLargest = cast(elementwise("select", [isBelow, 0, 1]), g.dtype);
    const share = elementwise("div", [reshape(g, kept), sum(isLargest, reduced.axes, true)]);
    return [elementwise("mul", [isLargest, share])];
  });
}

/** Index (i32) of the largest value along an axis, or in the flattened tensor. */
export function argmax(x: Tensor, axis?: number, keepDim = false): Tensor {
  const compute = computeDType(isFloat(x.dtype) ? x.dtype : "i32");
  const reduced = reducedShape("argmax", x, axis);
  checkNotEmpty("argmax", x, reduced);
  return noGrad(() =>
    tidy(() => launchReduce("argmax", cast(x, compute), reduced, keepDim ? reduced.kept : reduced.dropped)),
  );
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
