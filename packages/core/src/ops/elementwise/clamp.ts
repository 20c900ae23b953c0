/** Values kept between bounds. */

import { check } from "../../errors/errors";
import { less, maximum, minimum, where } from "../../rule/symbols";
import { Tensor } from "../../tensor/tensor";
import { isFloat, promote, rangeOf } from "../../values/dtype";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import type { ElementwiseDefinition } from "../definition";
import { ifAtMost, nanOf } from "./conditions";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

/** The gradient of an operand is PyTorch's: x has all of it also at a bound, and where the bounds cross the upper one has. */
const CLAMP: ElementwiseDefinition = {
  forward: (x, low, high) => nanOf(high!, minimum(nanOf(low!, maximum(x!, low!)), high!)),
  gradients: [
    (g, _y, x, low, high) => ifAtMost(low!, x!, ifAtMost(x!, high!, g, 0), 0),
    (g, _y, x, low, high) => where(less(low!, high!), where(less(x!, low!), g, 0), 0),
    (g, _y, x, low, high) => where(less(high!, x!), g, where(less(high!, low!), g, 0)),
  ],
  result: "integer",
};

/**
 * min(max(x, low), high), elementwise and broadcast: a bound that is left out or null does not bind. NaN anywhere gives NaN.
 *
 * @throws OptError BAD_ARGUMENT without a bound; BAD_SHAPE, DEVICE_MISMATCH
 * @example
 * clamp(tensor([-2, 0.5, 3]), -1, 1); // [-1, 0.5, 1]
 */
export const clamp = /* @__PURE__ */ definePrimitive(
  { torch: "a.clamp($0, $1)", arguments: [-0.5, 0.75] },
  (x: Tensor, low: Tensor | number | null = null, high: Tensor | number | null = null): Tensor => {
    checkTensor("clamp", x);
    check(
      low !== null || high !== null,
      "BAD_ARGUMENT",
      "clamp",
      () => "needs a lower or an upper bound, got none.",
      "For example clamp(x, 0, 1), or clamp(x, null, 1).",
    );
    // Of what is chosen between the other bound binds nothing: only an infinite number would make floats of integers.
    const result = [x, low, high].flatMap((each) => (each instanceof Tensor ? [each.dtype] : [])).reduce(promote);
    const [least, most] = isFloat(result) ? [-Infinity, Infinity] : (rangeOf(result) ?? rangeOf("i32")!);
    return elementwise(extended("clamp", CLAMP), [x, low ?? least, high ?? most]);
  },
);
