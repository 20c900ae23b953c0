/** Running sums and products. */

import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, type DType, isFloat } from "../../values/dtype";
import { axisOfElements } from "../../values/shape";
import { widenedDType } from "../autocast-operands";
import { clone, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { runningProduct, runningSum } from "./recurrence";

/**
 * Sums of each element along an axis and all before it. Integers are summed as i32.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * cumsum(tensor([1, 2, 3]), 0); // [1, 3, 6]
 */
export const cumsum = /* @__PURE__ */ definePrimitive(
  { torch: "a.cumsum($0)", arguments: ["$axis"] },
  (x: Tensor, axis: number): Tensor => {
    const samples = overSamples(cumsum, x, axis);
    if (samples) return samples;
    return along("cumsum", x, axis, runningSum);
  },
);

/**
 * Products of each element along an axis and all before it. Integers are multiplied as i32. Zeros have gradients, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * cumprod(tensor([1, 2, 3]), 0); // [1, 2, 6]
 */
export const cumprod = /* @__PURE__ */ definePrimitive(
  { torch: "a.cumprod($0)", arguments: ["$axis"], domain: { finite: true } },
  (x: Tensor, axis: number): Tensor => {
    const samples = overSamples(cumprod, x, axis);
    if (samples) return samples;
    return along("cumprod", x, axis, (wide, at) => (wide.shape[at] === 1 ? clone(wide) : runningProduct(wide, at)));
  },
);

function along(where: string, x: Tensor, axis: number, run: (wide: Tensor, axis: number) => Tensor): Tensor {
  checkTensor(where, x);
  const at = axisOfElements(where, axis, x.shape);
  const dtype = isFloat(x.dtype) ? widenedDType(x.dtype) : "i32";
  return computeIn(scanDType(x, dtype), [x], dtype, (wide) =>
    wide!.size > 0 && wide!.shape.length > 0 ? run(wide!, at) : clone(wide!),
  );
}

/** As PyTorch on the CPU: float64 for float32, float32 for 16-bit floats. */
function scanDType({ device }: Tensor, dtype: DType): DType {
  if (dtype === "f32") return device.backend.dtypes.includes("f64") ? "f64" : "f32";
  return isFloat(dtype) ? computeDType(dtype) : dtype;
}
