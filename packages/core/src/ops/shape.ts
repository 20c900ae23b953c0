/** Ops that move elements: reshape and leading slices are views, the others copy. */

import { byteSize, isFloat } from "../dtype";
import { OptError } from "../errors";
import { denseStrides, normalizeAxis, type Shape, sameShape, showShape, sizeOf } from "../shape";
import { type Backward, record } from "../tape";
import { Tensor } from "../tensor";
import { checkDevice } from "./check-device";
import { fill } from "./map";

/** Copies a box of `shape` between two tensors of one dtype. Offsets and strides count elements. */
function copyBox(
  source: Tensor,
  target: Tensor,
  shape: Shape,
  from: { offset: number; strides: readonly number[] },
  to: { offset: number; strides: readonly number[] },
): void {
  const slice = (tensor: Tensor, offset: number) => {
    const { memory, byteOffset, length } = tensor.memorySlice();
    const elementBytes = byteSize(tensor.dtype);
    return { memory, byteOffset: byteOffset + offset * elementBytes, length: length - offset };
  };
  if (shape.includes(0)) return;
  const rank0 = shape.length === 0;
  target.device.launch({
    kind: "copy",
    kernel: target.device.kernel({ kind: "copy", from: source.dtype, to: target.dtype }),
    source: slice(source, from.offset),
    target: slice(target, to.offset),
    shape: rank0 ? [1] : shape,
    sourceStrides: rank0 ? [1] : from.strides,
    targetStrides: rank0 ? [1] : to.strides,
  });
}

/** The same elements in another shape, without a copy. One extent may be -1. */
export function reshape(x: Tensor, shape: Shape): Tensor {
  x.checkAlive();
  const inferred = inferShape(x, shape);
  if (sameShape(inferred, x.shape)) return x;
  const before = x.shape;
  return record("reshape", x.alias(inferred), [x], [], (g) => [reshape(g, before)]);
}

function inferShape(x: Tensor, shape: Shape): Shape {
  if (!Array.isArray(shape)) {
    throw new OptError("BAD_SHAPE", "reshape", `the new shape must be an array, got ${typeof shape}.`, "Pass [2, 3].");
  }
  const known = shape.filter((extent) => extent !== -1);
  const size = sizeOf(known);
  const inferred = shape.map((extent) => (extent === -1 ? x.size / size : extent));
  const valid =
    shape.length - known.length <= 1 &&
    inferred.every((extent) => Number.isInteger(extent) && extent >= 0) &&
    sizeOf(inferred) === x.size;
  if (!valid) {
    throw new OptError(
      "BAD_SHAPE",
      "reshape",
      `the new shape must hold ${x.size} elements, got ${showShape(shape)} for ${showShape(x.shape)}.`,
      "One extent may be -1.",
    );
  }
  return inferred;
}

export function permute(x: Tensor, axes: readonly number[]): Tensor {
  const order = axes.map((axis) => normalizeAxis("permute", axis, x.shape.length));
  if (order.length !== x.shape.length || new Set(order).size !== order.length) {
    throw new OptError(
      "BAD_ARGUMENT",
      "permute",
      `axes must name each of ${x.shape.length} axes once, got [${axes}].`,
      "For example [1, 0].",
    );
  }
  const shape = order.map((axis) => x.shape[axis]!);
  const strides = denseStrides(x.shape);
  const output = Tensor.empty(shape, x.dtype, x.device);
  copyBox(
    x,
    output,
    shape,
    { offset: 0, strides: order.map((axis) => strides[axis]!) },
    { offset: 0, strides: denseStrides(shape) },
  );
  const inverse = order.map((_, i) => order.indexOf(i));
  return record("permute", output, [x], [], (g) => [permute(g, inverse)]);
}

export function transpose(x: Tensor, a = -2, b = -1): Tensor {
  const rank = x.shape.length;
  const [first, second] = [normalizeAxis("transpose", a, rank), normalizeAxis("transpose", b, rank)];
  return permute(
    x,
    x.shape.map((_, i) => (i === first ? second : i === second ? first : i)),
  );
}

export function slice(x: Tensor, start: number, end?: number, axis = 0): Tensor {
  const along = normalizeAxis("slice", axis, x.shape.length);
  const extent = x.shape[along]!;
  const position = (at: number) => {
    if (!Number.isInteger(at))
      throw new OptError("BAD_ARGUMENT", "slice", `positions must be integers, got ${at}.`, "Round them.");
    return Math.min(Math.max(at < 0 ? at + extent : at, 0), extent);
  };
  const from = position(start);
  const length = Math.max(position(end ?? extent) - from, 0);
  const shape = x.shape.map((e, i) => (i === along ? length : e));
  const strides = denseStrides(x.shape);
  const offset = from * strides[along]!;
  const outer = sizeOf(x.shape.slice(0, along));
  let output: Tensor;
  if (outer === 1) output = x.alias(shape, offset);
  else {
    output = Tensor.empty(shape, x.dtype, x.device);
    copyBox(x, output, shape, { offset, strides }, { offset: 0, strides: denseStrides(shape) });
  }
  const { shape: whole, dtype, device } = x;
  return record("slice", output, [x], [], (g) => {
    const result = fill(whole, 0, dtype, device);
    copyBox(g, result, shape, { offset: 0, strides: denseStrides(shape) }, { offset, strides });
    return [result];
  });
}

/** Joins tensors along an axis. @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH */
export function concat(tensors: readonly Tensor[], axis = 0): Tensor {
  const [first] = tensors;
  if (first === undefined)
    throw new OptError("BAD_ARGUMENT", "concat", "needs a tensor, got none.", "Pass a list of at least one.");
  checkDevice("concat", tensors);
  const along = normalizeAxis("concat", axis, first.shape.length);
  for (const tensor of tensors) {
    if (!sameShape(tensor.shape.toSpliced(along, 1), first.shape.toSpliced(along, 1))) {
      throw new OptError(
        "BAD_SHAPE",
        "concat",
        `shapes must agree but along axis ${along}, got ${showShape(first.shape)} and ${showShape(tensor.shape)}.`,
        "Reshape or slice them.",
      );
    }
    if (tensor.dtype !== first.dtype)
      throw new OptError(
        "BAD_DTYPE",
        "concat",
        `dtypes must agree, got ${first.dtype} and ${tensor.dtype}.`,
        "Cast with to().",
      );
  }
  const extents = tensors.map((tensor) => tensor.shape[along]!);
  const shape = first.shape.with(
    along,
    extents.reduce((a, b) => a + b),
  );
  const strides = denseStrides(shape);
  const output = Tensor.empty(shape, first.dtype, first.device);
  let position = 0;
  const starts = extents.map((extent) => {
    position += extent;
    return position - extent;
  });
  tensors.forEach((tensor, i) => {
    copyBox(
      tensor,
      output,
      tensor.shape,
      { offset: 0, strides: denseStrides(tensor.shape) },
      { offset: starts[i]! * strides[along]!, strides },
    );
  });
  if (!isFloat(first.dtype)) return output;
  return record("concat", output, tensors, [], splitter(starts, extents, along));
}

/** Made apart from the tensors, which a closure beside them would keep alive. */
function splitter(starts: readonly number[], extents: readonly number[], axis: number): Backward {
  return (g) => starts.map((start, i) => slice(g, start, start + extents[i]!, axis));
}
