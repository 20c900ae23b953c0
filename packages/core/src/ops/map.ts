/** Launches a map: broadcasting is turned into strides, and dimensions are merged so that devices see few. */
import type { Device } from "../device/device";
import { tidy } from "../device/scope";
import { Expression } from "../rule/expression";
import { type Program, trace } from "../rule/program";
import { Tensor } from "../tensor/tensor";
import { computeDType, type DType, isFloat, type MapDType } from "../values/dtype";
import { toStored } from "../values/half";
import { broadcastStrides, type Shape, sameShape } from "../values/shape";
import { mergeDimensions } from "../values/strides";
import { cast, copyInto } from "./cast";
import { computeOn } from "./compute";

/** Strides of dense inputs, by their number. */
const DENSE: readonly (readonly (readonly number[])[])[] = [0, 1, 2, 3, 4, 5].map((n) => Array(n).fill([1]));

/** Computes a program on tensors of the compute dtype, into a new tensor or, in place, into `output`. */
export function launchMap(
  program: Program,
  dtype: MapDType,
  inputs: readonly Tensor[],
  scalars: readonly number[],
  shape: Shape,
  output: Tensor = Tensor.empty(shape, dtype, inputs[0]!.device),
): Tensor {
  const { device } = output;
  const kernel = device.kernel({ kind: "map", program, dtype });
  const dense = inputs.every((input) => sameShape(input.shape, shape));
  const layout = dense ? { shape: [output.size], strides: DENSE[inputs.length]! } : merged(inputs, shape);
  device.launch({
    kind: "map",
    kernel,
    inputs: inputs.map((input) => input.memorySlice()),
    output: output.memorySlice(),
    scalars,
    shape: layout.shape,
    strides: layout.strides,
  });
  output.storage.overwritten();
  return output;
}

/** `WRAP` or `LOW` of integers in float64. */
export function inWords(program: Program, x: Tensor): Tensor {
  return launchMap(program, "f64", [x], [], x.shape);
}

function merged(inputs: readonly Tensor[], shape: Shape): { shape: Shape; strides: readonly (readonly number[])[] } {
  const all = [...inputs.map((input) => broadcastStrides(input.shape, shape)), broadcastStrides(shape, shape)];
  const layout = mergeDimensions(shape, all);
  return { shape: layout.shape, strides: layout.strides.slice(0, inputs.length) };
}

const buffer = (slot: number) => new Expression("buffer", [], slot);
const scalar = new Expression("scalar", [], 0);
const FILL = trace([], ["value"], [{ slot: 0, expression: scalar }]);
const SUM = trace(["a", "b"], [], [{ slot: 0, expression: new Expression("add", [buffer(0), buffer(1)]) }]);
/** A tensor of one value. */
export function fill(shape: Shape, value: number, dtype: DType, device: Device): Tensor {
  const filled = Tensor.empty(shape, dtype, device);
  try {
    fillInPlace(filled, value);
  } catch (error) {
    filled.dispose(); // devices without the dtype throw
    throw error;
  }
  return filled;
}

/** Overwrites a tensor with one value. */
export function fillInPlace(target: Tensor, value: number): void {
  if (target.dtype === "c64") {
    tidy(() => fillInPlace(partsOf(target), 0)); // nothing else is asked for
    return;
  }
  const compute = computeOn(target.device, target.dtype);
  // What integers cannot hold is cut to them here, alike on all devices.
  const stored = isFloat(target.dtype) ? value : toStored(target.dtype)(value);
  if (compute === target.dtype) launchMap(FILL, compute, [], [stored], target.shape, target);
  else {
    const filled = Tensor.empty(target.shape, compute, target.device);
    fillInPlace(filled, stored);
    copyInto(filled, target);
    filled.dispose();
  }
}

/** The numbers of a complex tensor, one behind the other. */
function partsOf(x: Tensor): Tensor {
  return x.alias([2 * x.size], 0, "f32");
}

/** target += other, in place. */
export function addInto(target: Tensor, other: Tensor): void {
  const compute = computeDType(target.dtype);
  if (target.dtype === "c64") tidy(() => addInto(partsOf(target), partsOf(other)));
  else if (compute === target.dtype) launchMap(SUM, compute, [target, other], [], target.shape, target);
  else {
    tidy(() => {
      const sum = launchMap(SUM, compute, [cast(target, compute), cast(other, compute)], [], target.shape);
      copyInto(sum, target);
    });
  }
}
