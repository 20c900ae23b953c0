/** The largest and the smallest value over axes, and where they stand. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { showShape, sizeOf } from "../../values/shape";
import { cast, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { computeOn } from "../compute";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { eq } from "../elementwise/logic";
import { reshape } from "../shape/shape";
import { type Axes, launchReduce, type ReducedShape, reducedShape, sum } from "./reduce";

/** Largest value over axes; equal largest share the gradient. */
export const maxOver = /* @__PURE__ */ definePrimitive(
  { torch: "a.amax($0, keepdim=$1)", tensors: ["...+"], arguments: ["$axis", "$flag"] },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => {
    const samples = overSamples(maxOver, x, axis, keepDim);
    if (samples) return samples;
    checkTensor("max", x);
    const compute = computeOn(x.device, isFloat(x.dtype) ? x.dtype : "i32");
    if (x.dtype !== compute) return computeIn(compute, [x], x.dtype, (wide) => maxOver(wide!, axis, keepDim));
    const reduced = reducedShape("max", x, axis, keepDim);
    checkNotEmpty("max", x, reduced);
    const output = launchReduce("max", x, reduced);
    const { kept } = reduced;
    return record("max", output, [x], [x, output], (g, [input, largest]) => {
      // NaN equals nothing: its share is 0 / 0, as in PyTorch.
      const isLargest = cast(eq(input!, reshape(largest!, kept)), g.dtype);
      const share = elementwise("div", [reshape(g, kept), sum(isLargest, reduced.axes, true)]);
      return [elementwise("mul", [isLargest, share])];
    });
  },
);

/** Index (i32) of the largest value along an axis, or in the flattened tensor. */
export const argmax = /* @__PURE__ */ definePrimitive(
  { torch: "a.argmax($0, keepdim=$1)", tensors: ["...+"], arguments: ["$axis", "$flag"] },
  (x: Tensor, axis?: number, keepDim = false): Tensor => {
    const samples = overSamples(argmax, x, axis, keepDim);
    if (samples) return samples;
    checkTensor("argmax", x);
    checkOneAxis("argmax", axis);
    const compute = computeOn(x.device, isFloat(x.dtype) ? x.dtype : "i32");
    const reduced = reducedShape("argmax", x, axis, keepDim);
    checkNotEmpty("argmax", x, reduced);
    return noGrad(() => tidy(() => launchReduce("argmax", cast(x, compute), reduced)));
  },
);

/** Smallest value over axes: the largest of what is turned round; equal smallest share the gradient. */
export const minOver = /* @__PURE__ */ definePrimitive(
  { torch: "a.amin($0, keepdim=$1)", tensors: ["...+"], arguments: ["$axis", "$flag"] },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => {
    checkTensor("min", x);
    checkNotEmpty("min", x, reducedShape("min", x, axis, keepDim));
    return tidy(() => cast(turned(maxOver(turned(x), axis, keepDim)), x.dtype));
  },
);

/** Index (i32) of the smallest value along an axis, or in the flattened tensor. */
export const argmin = /* @__PURE__ */ definePrimitive(
  { torch: "a.argmin($0, keepdim=$1)", tensors: ["...+"], arguments: ["$axis", "$flag"] },
  (x: Tensor, axis?: number, keepDim = false): Tensor => {
    checkTensor("argmin", x);
    checkOneAxis("argmin", axis);
    checkNotEmpty("argmin", x, reducedShape("argmin", x, axis, keepDim));
    return noGrad(() => tidy(() => argmax(turned(x), axis, keepDim)));
  },
);

/** The other order. -1 - x is exact for every integer, of which the smallest has no -x. */
export function turned(x: Tensor): Tensor {
  return isFloat(x.dtype) ? elementwise("neg", [x]) : elementwise("sub", [-1, x]);
}

function checkOneAxis(where: string, axis: unknown): void {
  const isOne = !Array.isArray(axis);
  check(isOne, "BAD_ARGUMENT", where, () => `takes one axis, got ${show(axis)}.`, "Reshape what is one to you.");
}

/** @throws OptError BAD_SHAPE if nothing is reduced */
export function checkNotEmpty(where: string, x: Tensor, { axes }: ReducedShape): void {
  check(
    sizeOf(axes.map((axis) => x.shape[axis]!)) > 0,
    "BAD_SHAPE",
    where,
    () => `there must be elements, got shape ${showShape(x.shape)}.`,
    "Check for empty tensors first.",
  );
}
