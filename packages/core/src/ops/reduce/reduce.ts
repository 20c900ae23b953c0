/** Reductions over axes. */

import type { Specs } from "../../backend/spec";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import { Expression } from "../../rule/expression";
import { trace } from "../../rule/program";
import { mul } from "../../rule/symbols";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { type ComputeDType, computeDType, isFloat, type MapDType } from "../../values/dtype";
import { axisOfElements, type Shape, sameShape, sizeOf } from "../../values/shape";
import { computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { computeOn, WRAP } from "../compute";
import { definePrimitive } from "../define-function";
import { inWords, launchMap } from "../map";
import { permute, reshape } from "../shape/shape";

const expanded = new Expression("buffer", [], 0);
const EXPAND = trace(["a"], [], [{ slot: 0, expression: expanded }]);
const SCALE = trace(["a"], ["factor"], [{ slot: 0, expression: mul(expanded, new Expression("scalar", [], 0)) }]);

export type Axes = number | readonly number[] | undefined;

/** The shape with the axes reduced to 1, and without them. */
export interface ReducedShape {
  readonly axes: readonly number[];
  readonly kept: Shape;
  readonly dropped: Shape;
  /** The one that was asked for. */
  readonly shape: Shape;
}

/** @throws OptError BAD_ARGUMENT */
export function reducedShape(where: string, x: Tensor, axis: Axes, keepDim: boolean): ReducedShape {
  check(
    axis === undefined || typeof axis === "number" || Array.isArray(axis),
    "BAD_ARGUMENT",
    where,
    () => `axis must be an integer or a list of them, got ${show(axis)}.`,
    `For example ${where}(0); two operands are compared by maximum and minimum.`,
  );
  const isBoolean = typeof keepDim === "boolean";
  checkValue(isBoolean, where, "keepDim", "true or false", keepDim);
  // No axes are all of them, as in PyTorch.
  const given = typeof axis === "number" ? [axis] : axis?.length ? axis : x.shape.map((_, i) => i);
  const named = given.map((a) => axisOfElements(where, a, x.shape)).sort((a, b) => a - b);
  const differ = new Set(named).size === named.length;
  check(differ, "BAD_ARGUMENT", where, () => `axes must differ, got [${named}].`, "Name each once.");
  const axes = x.shape.length === 0 ? [] : named;
  const dropped = x.shape.filter((_, i) => !axes.includes(i));
  const kept = x.shape.map((extent, i) => (axes.includes(i) ? 1 : extent));
  return { axes, kept, dropped, shape: keepDim ? kept : dropped };
}

/** Reduces axes that lie together in one launch; others are permuted to the end first. */
export function launchReduce(op: Specs["reduce"]["op"], x: Tensor, { axes, dropped, shape }: ReducedShape): Tensor {
  const together = axes.every((axis, i) => i === 0 || axis === axes[i - 1]! + 1);
  if (!together) {
    const others = x.shape.map((_, i) => i).filter((i) => !axes.includes(i));
    const moved = noGrad(() => permute(x, [...others, ...axes]));
    const last = axes.map((_, i) => others.length + i);
    const result = launchReduce(op, moved, { axes: last, kept: [], dropped, shape });
    moved.dispose();
    return result;
  }
  const first = axes[0] ?? 0;
  const output = Tensor.empty(shape, op === "argmax" ? "i32" : x.dtype, x.device);
  x.device.launch({
    kind: "reduce",
    kernel: x.device.kernel({ kind: "reduce", op, dtype: x.dtype as MapDType }),
    input: x.memorySlice(),
    output: output.memorySlice(),
    outer: sizeOf(x.shape.slice(0, first)),
    length: sizeOf(axes.map((axis) => x.shape[axis]!)),
    inner: sizeOf(x.shape.slice(first + axes.length)),
  });
  return output;
}

/** Sum over axes. Integers are summed as i32, modulo 2^32. */
export const sum = /* @__PURE__ */ definePrimitive(
  { torch: "a.sum($0, keepdim=$1)", arguments: ["$axis", "$flag"] },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => {
    const samples = overSamples(sum, x, axis, keepDim);
    if (samples) return samples;
    checkTensor("sum", x);
    const dtype = isFloat(x.dtype) ? x.dtype : "i32";
    const compute = computeOn(x.device, dtype);
    if (x.dtype !== compute) {
      return computeIn(compute, [x], dtype, (wide) => {
        const total = sum(wide!, axis, keepDim);
        return dtype === "i32" && compute === "f64" ? inWords(WRAP, total) : total;
      });
    }
    const reduced = reducedShape("sum", x, axis, keepDim);
    const output = launchReduce("sum", x, reduced);
    const { shape } = x;
    return record("sum", output, [x], [], (g) => [stretched(reshape(g, reduced.kept), shape)]);
  },
);

/** Mean over axes. The mean of nothing is NaN. Integers give f32. */
export const mean = /* @__PURE__ */ definePrimitive(
  { torch: "a.mean($0, keepdim=$1)", arguments: ["$axis", "$flag"] },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => {
    const samples = overSamples(mean, x, axis, keepDim);
    if (samples) return samples;
    checkTensor("mean", x);
    const dtype = isFloat(x.dtype) ? x.dtype : "f32";
    if (x.dtype !== computeDType(dtype))
      return computeIn(computeDType(dtype), [x], dtype, (wide) => mean(wide!, axis, keepDim));
    const reduced = reducedShape("mean", x, axis, keepDim);
    const output = launchReduce("mean", x, reduced);
    const { shape } = x;
    const count = sizeOf(reduced.axes.map((a) => shape[a]!));
    return record("mean", output, [x], [], (g) => [stretched(reshape(g, reduced.kept), shape, 1 / count)]);
  },
);

/** A tensor stretched to a shape, times a number. */
export function stretched(tensor: Tensor, shape: Shape, factor = 1): Tensor {
  const dtype = tensor.dtype as ComputeDType;
  const output =
    factor === 1 ? launchMap(EXPAND, dtype, [tensor], [], shape) : launchMap(SCALE, dtype, [tensor], [factor], shape);
  const { shape: own } = tensor;
  return record("stretched", output, [tensor], [], (g) => [
    sumTo(factor === 1 ? g : stretched(g, g.shape, factor), own),
  ]);
}

/** The adjoint of broadcasting: sums a gradient down to the shape that was stretched. */
export function sumTo(g: Tensor, shape: Shape): Tensor {
  if (sameShape(g.shape, shape)) return g;
  const missing = g.shape.length - shape.length;
  const axes = g.shape.flatMap((extent, axis) =>
    axis < missing || (shape[axis - missing] === 1 && extent !== 1) ? [axis] : [],
  );
  return reshape(sum(g, axes, true), shape);
}
