/** Ops that move elements. A reshape is always a view; the others always copy, whatever the axis. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import { overSamples } from "../../tensor/batching";
import { type Backward, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { isFloat, promote } from "../../values/dtype";
import { axisOfElements, denseStrides, normalizeAxis, type Shape, showShape, sizeOf } from "../../values/shape";
import { cast } from "../cast";
import { checkDevice } from "../check-device";
import { checkAnyTensor, checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { copyBox, dense } from "./copy-box";
import { type Region, rangeWithin, regionOf, taken } from "./region";

/** The same elements in another shape, or in the same, without a copy: a tensor of its own on x's memory. One extent may be -1. */
export const reshape = /* @__PURE__ */ definePrimitive(
  { torch: "a.reshape($0)", arguments: [[-1]] },
  (x: Tensor, shape: Shape): Tensor => {
    const samples = overSamples(reshape, x, shape);
    if (samples) return samples;
    checkAnyTensor("reshape", x);
    const inferred = inferShape(x, shape);
    const before = x.shape;
    return record("reshape", x.alias(inferred), [x], [], (g) => [reshape(g, before)]);
  },
);

function inferShape(x: Tensor, shape: Shape): Shape {
  if (shape === x.shape) return shape;
  if (Array.isArray(shape) && holds(shape, x.size)) return [...shape];
  const isList = Array.isArray(shape) && shape.every((extent) => typeof extent === "number");
  check(
    isList,
    "BAD_SHAPE",
    "reshape",
    () => `the new shape must be a list of integers, got ${show(shape)}.`,
    "Pass for example [2, 3].",
  );
  const others = -sizeOf(shape); // with one extent of -1
  const inferred = shape.map((extent) => (extent === -1 ? x.size / others : extent));
  check(
    shape.indexOf(-1) === shape.lastIndexOf(-1) &&
      inferred.every((extent) => Number.isInteger(extent) && extent >= 0) &&
      sizeOf(inferred) === x.size,
    "BAD_SHAPE",
    "reshape",
    () => `the new shape must hold ${x.size} elements, got ${showShape(shape)} for ${showShape(x.shape)}.`,
    "One extent may be -1.",
  );
  return inferred;
}

/** True for extents that need no second look. */
function holds(shape: Shape, size: number): boolean {
  for (const extent of shape) if (!(Number.isInteger(extent) && extent >= 0)) return false;
  return sizeOf(shape) === size;
}

/** The axes in another order, as a copy. */
export function permute(x: Tensor, axes: readonly number[]): Tensor {
  const samples = overSamples(permute, x, axes);
  if (samples) return samples;
  checkTensor("permute", x);
  const isList = Array.isArray(axes);
  checkValue(isList, "permute", "axes", "a list", axes, "For example [1, 0].");
  const order = axes.map((axis) => normalizeAxis("permute", axis, x.shape.length));
  check(
    order.length === x.shape.length && new Set(order).size === order.length,
    "BAD_ARGUMENT",
    "permute",
    () => `axes must name each of ${x.shape.length} axes once, got [${axes}].`,
    "For example [1, 0].",
  );
  const shape = order.map((axis) => x.shape[axis]!);
  const strides = denseStrides(x.shape);
  const output = Tensor.empty(shape, x.dtype, x.device);
  copyBox(x, output, shape, { offset: 0, strides: order.map((axis) => strides[axis]!) }, dense(shape));
  const inverse = order.map((_, i) => order.indexOf(i));
  return record("permute", output, [x], [], (g) => [permute(g, inverse)]);
}

/** Two axes exchanged, as a copy: the last two by default. */
export function transpose(x: Tensor, a = -2, b = -1): Tensor {
  return permute(x, exchanged(x, a, b));
}

/** The order of axes with two exchanged. @throws OptError BAD_ARGUMENT, BAD_DTYPE, DISPOSED */
export function exchanged(x: Tensor, a: number, b: number): number[] {
  checkTensor("transpose", x);
  const [first, second] = [axisOfElements("transpose", a, x.shape), axisOfElements("transpose", b, x.shape)];
  return x.shape.map((_, i) => (i === first ? second : i === second ? first : i));
}

/** Positions `start` to `end` of an axis, as a copy; negative ones count from the end. */
export function slice(x: Tensor, start: number, end?: number, axis = 0): Tensor {
  return taken("slice", x, sliceRegion(x, start, end, axis));
}

/** What `slice` takes. @throws OptError BAD_ARGUMENT, BAD_DTYPE, DISPOSED */
export function sliceRegion(x: Tensor, start: number, end?: number, axis = 0): Region {
  checkTensor("slice", x);
  const along = normalizeAxis("slice", axis, x.shape.length);
  for (const at of [start, end ?? start])
    checkValue(
      Number.isInteger(at),
      "slice",
      "positions",
      "integers",
      at,
      "Pass them one by one: slice(start, end, axis).",
    );
  const range = rangeWithin(x.shape[along]!, start, end);
  return regionOf(
    x.shape,
    x.shape.map((_, i) => (i === along ? range : null)),
  );
}

/** Joins tensors along an axis; mixed dtypes are promoted as PyTorch's. @throws OptError BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT; BAD_DTYPE for complex with real numbers */
export const concat = /* @__PURE__ */ definePrimitive(
  { torch: "torch.cat([a, b], $0)", tensors: ["nm", "nk"], arguments: [1], isList: true },
  (tensors: readonly Tensor[], axis = 0): Tensor => {
    const samples = overSamples(concat, tensors, axis);
    if (samples) return samples;
    const isList = Array.isArray(tensors);
    check(isList, "BAD_ARGUMENT", "concat", () => `needs a list, got ${show(tensors)}.`, "Pass tensors: [a, b].");
    for (const [i, tensor] of tensors.entries()) checkTensor("concat", tensor, `tensor ${i}`);
    const [first] = tensors;
    check(first !== undefined, "BAD_ARGUMENT", "concat", () => "needs a tensor, got none.", "Pass at least one.");
    checkDevice("concat", tensors);
    const along = normalizeAxis("concat", axis, first.shape.length);
    for (const tensor of tensors) {
      check(
        tensor.shape.length === first.shape.length &&
          tensor.shape.every((extent: number, axis: number) => axis === along || extent === first.shape[axis]),
        "BAD_SHAPE",
        "concat",
        () =>
          `shapes must have as many axes, and agree but along axis ${along}, got ${showShape(first.shape)} and ${showShape(tensor.shape)}.`,
        "Reshape or slice them.",
      );
    }
    const dtype = tensors.map((tensor) => tensor.dtype).reduce(promote);
    if (tensors.some((tensor) => tensor.dtype !== dtype))
      return tidy(() =>
        concat(
          tensors.map((tensor) => cast(tensor, dtype)),
          axis,
        ),
      );
    const extents = tensors.map((tensor) => tensor.shape[along]!);
    const shape = first.shape.with(
      along,
      extents.reduce((a, b) => a + b),
    );
    const strides = denseStrides(shape);
    const output = Tensor.empty(shape, first.dtype, first.device);
    let position = 0;
    const starts = tensors.map((tensor, i) => {
      const start = position;
      copyBox(tensor, output, tensor.shape, dense(tensor.shape), { offset: start * strides[along]!, strides });
      position += extents[i]!;
      return start;
    });
    if (!isFloat(first.dtype)) return output;
    return record("concat", output, tensors, [], splitter(starts, extents, along));
  },
);

/** Made apart from the tensors, which a closure beside them would keep alive. */
function splitter(starts: readonly number[], extents: readonly number[], axis: number): Backward {
  return (g) => starts.map((start, i) => slice(g, start, start + extents[i]!, axis));
}
