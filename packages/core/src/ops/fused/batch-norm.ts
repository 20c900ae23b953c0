/** Normalisation of channels by their batch in one kernel, on devices that have it. */

import { batchNormGrad as batchNormGradOnJs, batchNorm as batchNormOnJs } from "../../js/batch-norm";
import { carried } from "../../js/carried";
import { overSamples } from "../../tensor/batching";
import { isTaping, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import type { ComputeDType } from "../../values/dtype";
import { elementwise } from "../elementwise/elementwise";
import { mean, sum } from "../reduce/reduce";
import { reshape } from "../shape/shape";
import { channelOperands } from "./channel-operands";

const BATCH_NORM = /* @__PURE__ */ carried("batchNorm", batchNormOnJs);
const BATCH_NORM_GRAD = /* @__PURE__ */ carried("batchNormGrad", batchNormGradOnJs);

/** What `fusedBatchNorm` gives: mean and (biased) variance have no gradient. */
export interface BatchNormalized {
  readonly output: Tensor;
  readonly mean: Tensor;
  readonly variance: Tensor;
}

/**
 * (x - mean) / sqrt(variance + eps) * weight + bias of x [batch, channels, length] in one kernel, by channel (Ioffe & Szegedy
 * 2015). null where the device, the dtype or the shapes need more than it.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const found = fusedBatchNorm(rand([8, 3, 5]), null, null, 1e-5); // output [8, 3, 5], mean and variance [3], or null
 */
export function fusedBatchNorm(
  x: Tensor,
  weight: Tensor | null,
  bias: Tensor | null,
  eps: number,
): BatchNormalized | null {
  const samples = overSamples(fusedBatchNorm, x, weight, bias, eps);
  if (samples) return samples;
  const operands = channelOperands("fusedBatchNorm", "batchNorm", x, weight, bias, eps);
  if (operands === null) return null;
  const [scale, shift] = operands;
  const { device } = x;
  const dtype = x.dtype as ComputeDType;
  const [outer, channels, inner] = x.shape as [number, number, number];
  const output = Tensor.empty(x.shape, dtype, device);
  const average = Tensor.empty([channels], dtype, device);
  const variance = Tensor.empty([channels], dtype, device);
  device.launch({
    kind: "batchNorm",
    kernel: device.kernel({ kind: BATCH_NORM, dtype }),
    input: x.memorySlice(),
    weight: scale.memorySlice(),
    bias: shift.memorySlice(),
    output: output.memorySlice(),
    mean: average.memorySlice(),
    variance: variance.memorySlice(),
    ...{ outer, channels, inner, eps },
  });
  const recorded = record("batchNorm", output, [x, scale, shift], [x, scale, average, variance], (g, saved) =>
    isTaping() ? recordedGrad(g, saved, eps) : batchNormGrad(g, saved, eps),
  );
  if (scale !== weight) scale.dispose();
  if (shift !== bias) shift.dispose();
  return { output: recorded, mean: average, variance };
}

/** The gradients by ops that are recorded: of what was saved, x and weight have gradients themselves. */
function recordedGrad(g: Tensor, [x, weight]: readonly Tensor[], eps: number): Tensor[] {
  const op = (name: "add" | "sub" | "mul" | "div", a: Tensor | number, b: Tensor | number) => elementwise(name, [a, b]);
  const centered = op("sub", x!, mean(x!, [0, 2], true));
  const variance = mean(op("mul", centered, centered), [0, 2], true);
  const rstd = op("div", 1, elementwise("sqrt", [op("add", variance, eps)]));
  const normal = op("mul", centered, rstd);
  const along = op("mul", normal, mean(op("mul", g, normal), [0, 2], true));
  const scale = op("mul", rstd, reshape(weight!, [1, weight!.size, 1]));
  const input = op("mul", scale, op("sub", op("sub", g, mean(g, [0, 2], true)), along));
  return [input, sum(op("mul", g, normal), [0, 2]), sum(g, [0, 2])];
}

function batchNormGrad(gradient: Tensor, saved: readonly Tensor[], eps: number): Tensor[] {
  const [x, weight, average, variance] = saved as [Tensor, Tensor, Tensor, Tensor];
  const { device } = x;
  const dtype = x.dtype as ComputeDType;
  const [outer, channels, inner] = x.shape as [number, number, number];
  const inputGradient = Tensor.empty(x.shape, dtype, device);
  const weightGradient = Tensor.empty([channels], dtype, device);
  const biasGradient = Tensor.empty([channels], dtype, device);
  device.launch({
    kind: "batchNormGrad",
    kernel: device.kernel({ kind: BATCH_NORM_GRAD, dtype }),
    input: x.memorySlice(),
    weight: weight.memorySlice(),
    mean: average.memorySlice(),
    variance: variance.memorySlice(),
    gradient: gradient.memorySlice(),
    inputGradient: inputGradient.memorySlice(),
    weightGradient: weightGradient.memorySlice(),
    biasGradient: biasGradient.memorySlice(),
    ...{ outer, channels, inner, eps },
  });
  return [inputGradient, weightGradient, biasGradient];
}
