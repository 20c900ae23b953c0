/** Results that no op of core computes, and what their gradients are. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { checkBody } from "../host/synchronous";
import { record } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { checkTensor } from "./check-tensor";

/**
 * Puts a result that was computed elsewhere (under `noGrad`, by another library, on other processes) on the tape: `backward` gives the
 * gradients of `inputs` from that of `output`, null where there is none. Computed by ops, they can be differentiated again.
 *
 * @param output a new tensor, of which nothing was computed yet
 * @throws OptError BAD_ARGUMENT if it was computed on the tape, or is a leaf that requires a gradient
 * @example
 * const w = parameter([1, 2]);
 * const doubled = withGradient(noGrad(() => w.mul(2)), [w], (gradient) => [gradient.mul(2)]);
 * doubled.sum().backward(); // w.grad: 2 2
 */
export function withGradient(
  output: Tensor,
  inputs: readonly Tensor[],
  backward: (gradient: Tensor) => readonly (Tensor | null)[],
): Tensor {
  const where = "withGradient";
  checkTensor(where, output, "the output");
  const list = () => `inputs must be a list of tensors, got ${show(inputs)}.`;
  check(Array.isArray(inputs), "BAD_ARGUMENT", where, list, "Wrap it: [w].");
  for (const [i, input] of inputs.entries()) checkTensor(where, input, `input ${i}`);
  checkBody(where, backward);
  const problem = () => "the output has a gradient of its own.";
  check(!output.requiresGrad, "BAD_ARGUMENT", where, problem, "Compute it under noGrad.");
  return record("withGradient", output, inputs, [], (gradient) => backward(gradient));
}
