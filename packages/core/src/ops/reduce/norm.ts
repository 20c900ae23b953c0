/** Vector norms over axes. */

import { checkValue } from "../../errors/check-value";
import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { widenedDType } from "../autocast-operands";
import { cast, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { ne } from "../elementwise/logic";
import { powerOfSize, root, rootOf } from "../elementwise/root";
import { checkNotEmpty, maxOver, minOver } from "./largest";
import { type Axes, reducedShape, sum } from "./reduce";

/**
 * sum(|x|^p)^(1/p) over the given axes, or over all; the largest |x| for p = Infinity, the smallest for -Infinity, the count of what is
 * not 0 for p = 0. The gradient is 0 where the norm is. Integers give f32.
 *
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE for a negative or infinite p of nothing
 * @example
 * norm(tensor([3, -4])); // 5
 */
export const norm = /* @__PURE__ */ definePrimitive(
  {
    torch: "torch.linalg.vector_norm(a, $0, $1, keepdim=$2)",
    tensors: ["...+"],
    arguments: [3, "$axis", "$flag"],
    domain: { finite: true },
  },
  (x: Tensor, p = 2, axis?: Axes, keepDim = false): Tensor => {
    const samples = overSamples(norm, x, p, axis, keepDim);
    if (samples) return samples;
    checkTensor("norm", x);
    const isNumber = typeof p === "number" && !Number.isNaN(p);
    checkValue(isNumber, "norm", "p", "a number", p, "For example norm(x, 2, axis).");
    const reduced = reducedShape("norm", x, axis, keepDim);
    if (p < 0 || p === Number.POSITIVE_INFINITY) checkNotEmpty("norm", x, reduced);
    const dtype = isFloat(x.dtype) ? widenedDType(x.dtype) : "f32";
    return computeIn(computeDType(dtype), [x], dtype, (wide) => normOf(wide!, p, axis, keepDim));
  },
);

function normOf(x: Tensor, p: number, axis: Axes, keepDim: boolean): Tensor {
  const total = (terms: Tensor) => sum(terms, axis, keepDim);
  const sizes = () => elementwise("abs", [x]);
  switch (p) {
    case 2:
      return root(total(elementwise("mul", [x, x])));
    case 1:
      return total(sizes());
    case 0:
      return total(cast(ne(x, 0), x.dtype));
    case Number.POSITIVE_INFINITY:
      return maxOver(sizes(), axis, keepDim);
    case Number.NEGATIVE_INFINITY:
      return minOver(sizes(), axis, keepDim);
    default:
      return rootOf(total(powerOfSize(x, p)), p);
  }
}
