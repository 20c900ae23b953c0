/** softmax and log-softmax along an axis. */

import { tidy } from "../../device/scope";
import { logSoftmaxGradRows, logSoftmaxRows, softmaxGradRows, softmaxRows } from "../../rule/row-programs/softmax";
import { overSamples } from "../../tensor/batching";
import { isTaping, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { axisOfElements } from "../../values/shape";
import { inFloat32 } from "../autocast-operands";
import { computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { sum } from "../reduce/reduce";
import { reshape, transpose } from "../shape/shape";
import { launchRows } from "./launch-rows";

/** One of both. */
export function softmaxOf(x: Tensor, axis: number, log: boolean): Tensor {
  const samples = overSamples(softmaxOf, x, axis, log);
  if (samples) return samples;
  const where = log ? "logSoftmax" : "softmax";
  checkTensor(where, x);
  const inFull = inFloat32([x], (wide) => softmaxOf(wide!, axis, log));
  if (inFull !== null) return inFull;
  const dtype = isFloat(x.dtype) ? x.dtype : "f32";
  const compute = computeDType(dtype);
  if (x.dtype !== compute) return computeIn(compute, [x], dtype, (wide) => softmaxOf(wide!, axis, log));
  const last = x.shape.length - 1;
  const along = axisOfElements(where, axis, x.shape);
  if (last < 0) return tidy(() => reshape(softmaxOf(reshape(x, [1]), 0, log), []));
  if (along !== last) return softmaxAlong(x, along, log);
  const length = x.shape[last]!;
  const rows = length === 0 ? 0 : x.size / length;
  const output = Tensor.empty(x.shape, compute, x.device);
  launchRows(log ? logSoftmaxRows : softmaxRows, { inputs: { x }, outputs: { y: output }, rows, length });
  return record(where, output, [x], [output], (g, [forward]) => [softmaxGrad(forward!, g, log, rows, length)]);
}

/** exp(x) / sum(exp(x)) over an axis. */
export const softmax = /* @__PURE__ */ definePrimitive(
  { torch: "a.softmax($0)", arguments: ["$axis"] },
  (x: Tensor, axis = -1): Tensor => softmaxOf(x, axis, false),
);

/** log(exp(x) / sum(exp(x))) over an axis. */
export const logSoftmax = /* @__PURE__ */ definePrimitive(
  { torch: "a.log_softmax($0)", arguments: ["$axis"] },
  (x: Tensor, axis = -1): Tensor => softmaxOf(x, axis, true),
);

function softmaxAlong(x: Tensor, axis: number, log: boolean): Tensor {
  return tidy(() => transpose(softmaxOf(transpose(x, axis, -1), -1, log), axis, -1));
}

/** y (g - sum(g y)); of the logarithm g - exp(y) sum(g). */
function softmaxGrad(forward: Tensor, gradient: Tensor, log: boolean, rows: number, length: number): Tensor {
  if (isTaping()) {
    const scaled = log ? gradient : elementwise("mul", [gradient, forward]);
    const factor = log ? elementwise("exp", [forward]) : forward;
    return elementwise("sub", [scaled, elementwise("mul", [factor, sum(scaled, -1, true)])]);
  }
  const output = Tensor.empty(forward.shape, forward.dtype, forward.device);
  const inputs = { y: forward, g: gradient };
  launchRows(log ? logSoftmaxGradRows : softmaxGradRows, { inputs, outputs: { dx: output }, rows, length });
  return output;
}
