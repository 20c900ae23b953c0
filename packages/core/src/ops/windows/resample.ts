/** Images of another size, of which each element is a weighted sum of elements of the plane. */

import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { type ComputeDType, computeDType, isFloat } from "../../values/dtype";
import { computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { computeOn } from "../compute";
import { elementwise } from "../elementwise/elementwise";
import { floor } from "../elementwise/round";
import { gather } from "../indices/gather";
import { floats, places } from "../indices/positions";
import { sum } from "../reduce/reduce";
import { reshape, transpose } from "../shape/shape";

/** For each output of an axis: which elements it is made of, and their weights. */
export interface AxisTaps {
  readonly indices: readonly (readonly number[])[];
  readonly weights: readonly (readonly number[])[];
}

/** x [batch, channels, ...extents], one list of taps for each extent. The weights of an output multiply over the axes. */
export function resample(x: Tensor, axes: readonly AxisTaps[]): Tensor {
  const samples = overSamples(resample, x, axes);
  if (samples) return samples;
  checkTensor("resample", x);
  const isList = Array.isArray(axes) && axes.length === x.shape.length - 2;
  const fits = isList && axes.every((taps) => Array.isArray(taps?.indices?.[0]) && Array.isArray(taps.weights?.[0]));
  checkValue(fits, "resample", "axes", "the taps of each extent", axes);
  const [batch, channels, ...extents] = x.shape as [number, number, ...number[]];
  const outputs = axes.map(({ indices }) => indices.length);
  const taps = axes.map(({ indices }) => indices[0]!.length);
  const [count, most] = [product(outputs), product(taps)];
  const split = (i: number, sizes: readonly number[]) =>
    sizes.map((size, axis) => Math.floor(i / product(sizes.slice(axis + 1))) % size);
  const at = (i: number) => {
    const [tap, output] = [split(Math.floor(i / count), taps), split(i % count, outputs)];
    return axes.reduce((place, { indices }, axis) => place * extents[axis]! + indices[output[axis]!]![tap[axis]!]!, 0);
  };
  const weight = (i: number) => {
    const [tap, output] = [split(Math.floor(i / count), taps), split(i % count, outputs)];
    return axes.reduce((all, { weights }, axis) => all * weights[output[axis]!]![tap[axis]!]!, 1);
  };
  const compute = most === 1 ? computeOn(x.device, x.dtype) : computeDType(x.dtype);
  check(
    x.device.backend.dtypes.includes(compute),
    "UNSUPPORTED",
    "interpolate",
    () => `weighs ${x.dtype} in f64, which ${x.device.name} lacks.`,
    'Use x.to("f32"), or mode: "nearest".',
  );
  return computeIn(compute, [x], x.dtype, (images) => {
    const { device } = images!;
    const planes = transpose(reshape(images!, [batch * channels, product(extents)]), 0, 1);
    const taken = gather(planes, places([most, count], device, at));
    const sums =
      most === 1
        ? reshape(taken, [count, batch * channels])
        : sum(elementwise("mul", [taken, floats([most, count, 1], images!.dtype as ComputeDType, device, weight)]), 0);
    // Weighted integers are rounded, as PyTorch's bytes are.
    const rounded = most === 1 || isFloat(x.dtype) ? sums : floor(elementwise("add", [sums, 0.5]));
    return reshape(transpose(rounded, 0, 1), [batch, channels, ...outputs]);
  });
}

function product(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a * b, 1);
}
