/** Dividing gradients by what they were summed over. */
import { tidy } from "../../device/scope";
import { cast, copyInto, elementwise } from "../../ops";
import { checkTensor } from "../../ops/check-tensor";
import { launchMap } from "../../ops/map";
import { Expression } from "../../rule/expression";
import { trace } from "../../rule/program";
import { div } from "../../rule/symbols";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { computeDType } from "../../values/dtype";
import { checkOneDevice, listed } from "./clip";
import { gradientsOf } from "./norm";

const [GRADIENT, DIVISOR] = [0, 1].map((slot) => new Expression("buffer", [], slot)) as [Expression, Expression];
const DIVIDE = /* @__PURE__ */ trace(["grad", "divisor"], [], [{ slot: 0, expression: div(GRADIENT, DIVISOR) }]);

/**
 * Divides all gradients in place: g = g / divisor. Accumulated sums become means: of batches, samples or tokens.
 *
 * @param divisor a tensor of one element, so that a compiled step follows it
 * @throws OptError BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const w = parameter([1, 2]);
 * for (const x of [tensor([1, 2]), tensor([3, 4]), tensor([5, 6])]) w.mul(x).sum().backward(); // gradients add up
 * divideGradients([w], tensor(3)); // w.grad is [3, 4]
 */
export function divideGradients(params: Iterable<Tensor> | Tensor, divisor: Tensor): void {
  const where = "divideGradients";
  checkTensor(where, divisor, "divisor");
  const grads = gradientsOf(listed(where, params));
  if (grads.length === 0) return;
  checkOneDevice(where, [...grads, divisor]);
  noGrad(() =>
    tidy(() => {
      for (const each of grads) {
        const grad = each.dtype === "c64" ? each.alias([...each.shape, 2], 0, "f32") : each;
        const compute = computeDType(grad.dtype);
        const by = cast(divisor.reshape([]), compute);
        if (grad.dtype === compute) launchMap(DIVIDE, compute, [grad, by], [], grad.shape, grad);
        else copyInto(elementwise("div", [cast(grad, compute), by]), grad);
      }
    }),
  );
}
