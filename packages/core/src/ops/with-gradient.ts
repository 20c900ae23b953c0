/** Results that no op of core computes, and what their gradients are. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { checkBody, checkSynchronous } from "../host/synchronous";
import { record } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { sameShape, showShape } from "../values/shape";
import { checkAnyTensor, checkTensor } from "./check-tensor";
import { reshape } from "./shape/shape";

const where = "withGradient";

/** What the gradient of an input must be. */
type Form = Pick<Tensor, "shape" | "dtype" | "device">;

/**
 * Puts a result that was computed elsewhere on the tape: under `noGrad`, by another library, in other processes. `backward` returns the
 * gradients of `inputs` from that of `output`, null for an input without one. Computed by ops, they can be differentiated again; tensors of your
 * own stay yours.
 *
 * @param output a new tensor, of which nothing was computed yet
 * @throws OptError BAD_ARGUMENT if it was computed on the tape, or is a leaf that requires a gradient. backward: BAD_ARGUMENT, BAD_SHAPE,
 * BAD_DTYPE, DEVICE_MISMATCH for what is no gradient of an input
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
  checkTensor(where, output, "the output");
  check(
    Array.isArray(inputs),
    "BAD_ARGUMENT",
    where,
    () => `inputs must be a list of tensors, got ${show(inputs)}.`,
    "Wrap it: [w].",
  );
  for (const [i, input] of inputs.entries()) checkTensor(where, input, `input ${i}`);
  checkBody(where, backward);
  check(
    !output.requiresGrad,
    "BAD_ARGUMENT",
    where,
    () => "the output has a gradient of its own.",
    "Compute it under noGrad.",
  );
  const forms = inputs.map(({ requiresGrad, shape, dtype, device }) =>
    requiresGrad ? { shape, dtype, device } : null,
  );
  return record(where, output, inputs, [], (gradient) => {
    const given: unknown = backward(gradient);
    checkSynchronous(where, given);
    const isComplete = Array.isArray(given) && given.length === forms.length;
    check(
      isComplete,
      "BAD_ARGUMENT",
      where,
      () => `backward must give a list of ${forms.length}, got ${Array.isArray(given) ? given.length : show(given)}.`,
      "Give null where there is no gradient.",
    );
    return forms.map((form, i) => (form === null || given[i] === null ? null : checked(given[i], form, i)));
  });
}

/** A view, which autograd may take over: the tensor may be the caller's, or come twice. */
function checked(gradient: Tensor, { shape, dtype, device }: Form, i: number): Tensor {
  checkAnyTensor(where, gradient, `the gradient of input ${i}`);
  check(
    sameShape(gradient.shape, shape),
    "BAD_SHAPE",
    where,
    () => `the gradient of input ${i} must have shape ${showShape(shape)}, got ${showShape(gradient.shape)}.`,
    "Sum what was broadcast.",
  );
  check(
    gradient.dtype === dtype,
    "BAD_DTYPE",
    where,
    () => `the gradient of input ${i} must be ${dtype}, got ${gradient.dtype}.`,
    "Cast it with to().",
  );
  check(
    gradient.device === device,
    "DEVICE_MISMATCH",
    where,
    () => `the gradient of input ${i} must be on ${device.name}, got ${gradient.device.name}.`,
    "Move it with to().",
  );
  return reshape(gradient, shape);
}
