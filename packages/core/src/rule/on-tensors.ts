/** A rule evaluated on tensors: the differentiable optimizer step. */

import { tensor } from "../create";
import { OptError } from "../errors";
import type { Tensor } from "../tensor";
import type { Expression } from "./expression";
import type { Rule } from "./rule";

/**
 * Computes a rule with tensor ops, so that gradients flow through the step (unrolled optimisation, learned learning rates).
 * Nothing is updated in place: the new values are returned.
 *
 * @param scalars numbers, or tensors of one element to differentiate by
 * @throws OptError BAD_ARGUMENT if a buffer or scalar is missing
 * @example
 * const sgd = defineRule({
 *   name: "sgd", buffers: ["param", "grad"], scalars: ["negLr"],
 *   update: ({ param, grad }, { negLr }) => ({ param: add(param, mul(negLr, grad)) }),
 * });
 * const negLr = parameter(-0.1);
 * const { param } = applyRule(sgd, { param: w.detach(), grad: w.detach().mul(2) }, { negLr });
 * param.pow(2).sum().backward(); // negLr.grad: how the loss after the step changes with the learning rate
 */
export function applyRule<Buffer extends string, Scalar extends string>(
  rule: Rule<Buffer, Scalar>,
  buffers: Record<Buffer, Tensor>,
  scalars: Record<Scalar, Tensor | number>,
): Partial<Record<Buffer, Tensor>> {
  for (const name of rule.buffers) {
    if (buffers[name] === undefined)
      throw new OptError(
        "BAD_ARGUMENT",
        rule.name,
        `needs the buffer ${name}, got none.`,
        `Buffers: ${rule.buffers.join(", ")}.`,
      );
  }
  const { dtype, device } = buffers[rule.buffers[0]!];
  const asTensors = {} as Record<Scalar, Tensor>;
  for (const name of rule.scalars) {
    const value = scalars[name];
    if (value === undefined)
      throw new OptError(
        "BAD_ARGUMENT",
        rule.name,
        `needs the scalar ${name}, got none.`,
        `Scalars: ${rule.scalars.join(", ")}.`,
      );
    asTensors[name] = typeof value === "number" ? tensor(value, { dtype, device }) : (value as Tensor);
  }
  // Tensors and symbols answer to the same ops; the rule's text does not know which it is given.
  const update = rule.update as unknown as (
    b: Record<Buffer, Tensor>,
    h: Record<Scalar, Tensor>,
  ) => Partial<Record<Buffer, Tensor | Expression>>;
  return update(buffers, asTensors) as Partial<Record<Buffer, Tensor>>;
}
