/** Normalisation of groups of channels of each sample in one kernel, on devices that have it. */

import { checkValue } from "../../errors/check-value";
import { carried } from "../../js/carried";
import { groupNormGrad as groupNormGradOnJs, groupNorm as groupNormOnJs } from "../../js/group-norm";
import { overSamples } from "../../tensor/batching";
import { isTaping, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import type { ComputeDType } from "../../values/dtype";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { mean, sum } from "../reduce/reduce";
import { reshape } from "../shape/shape";
import { channelOperands } from "./channel-operands";

const GROUP_NORM = /* @__PURE__ */ carried("groupNorm", groupNormOnJs);
const GROUP_NORM_GRAD = /* @__PURE__ */ carried("groupNormGrad", groupNormGradOnJs);

/**
 * (x - mean) / sqrt(variance + eps) * weight + bias of x [batch, channels, length] in one kernel, mean and (biased) variance being those of
 * each of `groups` groups of channels of each sample (Wu & He 2018). null where the device, the dtype or the shapes need more than it.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const normal = fusedGroupNorm(rand([8, 4, 5]), null, null, 2, 1e-5); // [8, 4, 5], or null
 */
export function fusedGroupNorm(
  x: Tensor,
  weight: Tensor | null,
  bias: Tensor | null,
  groups: number,
  eps: number,
): Tensor | null {
  const samples = overSamples(fusedGroupNorm, x, weight, bias, groups, eps);
  if (samples) return samples;
  const where = "fusedGroupNorm";
  const isCount = Number.isSafeInteger(groups) && groups > 0;
  checkValue(isCount, where, "groups", "a positive integer", groups, "Give a divisor of the channels.");
  checkTensor(where, x);
  if (x.shape[1]! % groups !== 0) return null;
  const operands = channelOperands(where, "groupNorm", x, weight, bias, eps);
  if (operands === null) return null;
  const [scale, shift] = operands;
  const { device } = x;
  const dtype = x.dtype as ComputeDType;
  const [outer, channels, inner] = x.shape as [number, number, number];
  const output = Tensor.empty(x.shape, dtype, device);
  const [average, variance] = [0, 1].map(() => Tensor.empty([outer, groups], dtype, device)) as [Tensor, Tensor];
  device.launch({
    kind: "groupNorm",
    kernel: device.kernel({ kind: GROUP_NORM, dtype }),
    input: x.memorySlice(),
    weight: scale.memorySlice(),
    bias: shift.memorySlice(),
    output: output.memorySlice(),
    mean: average.memorySlice(),
    variance: variance.memorySlice(),
    ...{ outer, channels, inner, groups, eps },
  });
  const recorded = record("groupNorm", output, [x, scale, shift], [x, scale, average, variance], (g, saved) =>
    isTaping() ? recordedGrad(g, saved, groups, eps) : groupNormGrad(g, saved, groups, eps),
  );
  for (const each of [average, variance]) each.dispose();
  if (scale !== weight) scale.dispose();
  if (shift !== bias) shift.dispose();
  return recorded;
}

/** The gradients by ops that are recorded: of what was saved, x and weight have gradients themselves. */
function recordedGrad(g: Tensor, [x, weight]: readonly Tensor[], groups: number, eps: number): Tensor[] {
  const op = (name: "add" | "sub" | "mul" | "div", a: Tensor | number, b: Tensor | number) => elementwise(name, [a, b]);
  const [outer, channels, inner] = x!.shape as [number, number, number];
  const grouped = (each: Tensor) => reshape(each, [outer, groups, (channels / groups) * inner]);
  const average = (each: Tensor) => mean(each, [2], true);
  const rows = grouped(x!);
  const centered = op("sub", rows, average(rows));
  const rstd = op("div", 1, elementwise("sqrt", [op("add", average(op("mul", centered, centered)), eps)]));
  const normal = op("mul", centered, rstd);
  const scaled = grouped(op("mul", g, reshape(weight!, [1, channels, 1])));
  const along = op("mul", normal, average(op("mul", scaled, normal)));
  const input = op("mul", rstd, op("sub", op("sub", scaled, average(scaled)), along));
  return [reshape(input, x!.shape), sum(op("mul", g, reshape(normal, x!.shape)), [0, 2]), sum(g, [0, 2])];
}

function groupNormGrad(gradient: Tensor, saved: readonly Tensor[], groups: number, eps: number): Tensor[] {
  const [x, weight, average, variance] = saved as [Tensor, Tensor, Tensor, Tensor];
  const { device } = x;
  const dtype = x.dtype as ComputeDType;
  const [outer, channels, inner] = x.shape as [number, number, number];
  const inputGradient = Tensor.empty(x.shape, dtype, device);
  const ofSamples = [0, 1].map(() => Tensor.empty([outer, channels], dtype, device)) as [Tensor, Tensor];
  device.launch({
    kind: "groupNormGrad",
    kernel: device.kernel({ kind: GROUP_NORM_GRAD, dtype }),
    input: x.memorySlice(),
    weight: weight.memorySlice(),
    mean: average.memorySlice(),
    variance: variance.memorySlice(),
    gradient: gradient.memorySlice(),
    inputGradient: inputGradient.memorySlice(),
    weightGradient: ofSamples[0].memorySlice(),
    biasGradient: ofSamples[1].memorySlice(),
    ...{ outer, channels, inner, groups, eps },
  });
  const gradients = ofSamples.map((each) => sum(each, 0));
  for (const each of ofSamples) each.dispose();
  return [inputGradient, ...gradients];
}
