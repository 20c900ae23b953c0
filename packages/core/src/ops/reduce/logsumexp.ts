/** Sums of numbers that are stored as logarithms, over axes and running. */

import { tidy } from "../../device/scope";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { axisOfElements } from "../../values/shape";
import { widenedDType } from "../autocast-operands";
import { clone, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { logaddexp } from "../elementwise/logarithms";
import { eq, isfinite } from "../elementwise/logic";
import { withFlatGradient } from "../flat-gradient";
import { fill } from "../map";
import { reshape } from "../shape/shape";
import { maxOver } from "./largest";
import { type Axes, type ReducedShape, reducedShape, sum } from "./reduce";
import { scan } from "./scan";

/**
 * log(sum(exp(x))) over the given axes, or over all, without overflow: -Infinity of nothing. The gradient is 0 where all are -Infinity
 * (PyTorch gives NaN). Integers give f32.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * logsumexp(tensor([1000, 1000]), 0); // 1000.6931
 */
export const logsumexp = /* @__PURE__ */ definePrimitive(
  { torch: "torch.logsumexp(a, $0, keepdim=$1)", arguments: ["$axis", "$flag"], domain: { finite: true } },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => {
    const samples = overSamples(logsumexp, x, axis, keepDim);
    if (samples) return samples;
    checkTensor("logsumexp", x);
    const reduced = reducedShape("logsumexp", x, axis, keepDim);
    const dtype = isFloat(x.dtype) ? widenedDType(x.dtype) : "f32";
    return computeIn(computeDType(dtype), [x], dtype, (wide) => summed(wide!, reduced));
  },
);

function summed(x: Tensor, { axes, kept, shape }: ReducedShape): Tensor {
  const output = noGrad(() =>
    tidy(() => {
      const isEmpty = axes.some((axis) => x.shape[axis] === 0);
      const largest = isEmpty ? fill(kept, 0, x.dtype, x.device) : maxOver(x, axes, true);
      const shift = elementwise("select", [isfinite(largest), largest, 0]);
      const total = sum(elementwise("exp", [elementwise("sub", [x, shift])]), axes, true);
      return reshape(elementwise("add", [elementwise("log", [total]), shift]), shape);
    }),
  );
  return record("logsumexp", output, [x], [x, output], shares(kept));
}

/** Made apart from the tensors, which a closure beside them would keep alive. */
const shares =
  (kept: ReducedShape["kept"]) =>
  (g: Tensor, [x, y]: readonly Tensor[]) => {
    const total = reshape(y!, kept);
    const shift = elementwise("select", [eq(total, Number.NEGATIVE_INFINITY), 0, total]);
    return [elementwise("mul", [reshape(g, kept), elementwise("exp", [elementwise("sub", [x!, shift])])])];
  };

/**
 * log of the running sums of exp(x) along an axis, without overflow. Integers give f32.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * logcumsumexp(tensor([0, 0, 0]), 0); // [0, 0.6931, 1.0986]
 */
export const logcumsumexp = /* @__PURE__ */ definePrimitive(
  { torch: "torch.logcumsumexp(a, $0)", arguments: ["$axis"], domain: { finite: true } },
  (x: Tensor, axis: number): Tensor => {
    const samples = overSamples(logcumsumexp, x, axis);
    if (samples) return samples;
    checkTensor("logcumsumexp", x);
    const along = axisOfElements("logcumsumexp", axis, x.shape);
    const dtype = isFloat(x.dtype) ? widenedDType(x.dtype) : "f32";
    return computeIn(computeDType(dtype), [x], dtype, (wide) => runningTotal(wide!, along));
  },
);

/** Its gradient depends on x, as far as there is an axis: of one element it is 0. */
function runningTotal(x: Tensor, axis: number): Tensor {
  if (x.size === 0 || x.shape.length === 0) return clone(x);
  const given = x.shape[axis] === 1 ? withFlatGradient(x) : x;
  return scan([given], axis, ([later], [before]) => [logaddexp(before!, later!)])[0]!;
}
