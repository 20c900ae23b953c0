/** A rule evaluated on tensors: the differentiable optimizer step. */

import { computeDType } from "../dtype";
import { OptError } from "../errors";
import type { Op } from "../rule/expression";
import { evaluateOp } from "../rule/interpret";
import type { Rule } from "../rule/rule";
import { sameShape } from "../shape";
import { Tensor } from "../tensor";
import { elementwise } from "./elementwise";
import { fill } from "./map";

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
  const given = rule.buffers.map((name) => wanted(rule, "buffer", name, buffers[name]));
  const numbers = rule.scalars.map((name) => wanted(rule, "scalar", name, scalars[name]));
  const { dtype, shape, device } = given[0]!;
  const compute = computeDType(dtype);
  const values: (Tensor | number)[] = [];
  for (const { op, args, value } of rule.program.nodes) {
    if (op === "buffer") values.push(given[value]!);
    else if (op === "scalar") values.push(numbers[value]!);
    else if (op === "constant") values.push(value);
    else
      values.push(
        apply(
          op,
          args.map((arg) => values[arg]!),
        ),
      );
  }
  function apply(op: Op, operands: (Tensor | number)[]): Tensor | number {
    if (operands.some((operand) => operand instanceof Tensor)) return elementwise(op, operands);
    const [a, b, c] = operands.map((operand) =>
      compute === "f32" ? Math.fround(operand as number) : (operand as number),
    );
    return evaluateOp(op, compute, a!, b, c);
  }
  const result: Partial<Record<Buffer, Tensor>> = {};
  for (const { slot, node } of rule.program.outputs) {
    const value = values[node]!;
    const isWhole = value instanceof Tensor && sameShape(value.shape, shape);
    result[rule.buffers[slot]!] = isWhole ? value : elementwise("mul", [fill(shape, 1, dtype, device), value]);
  }
  return result;
}

function wanted<Value>(rule: Rule, kind: "buffer" | "scalar", name: string, value: Value | undefined): Value {
  if (value !== undefined) return value;
  const all = kind === "buffer" ? rule.buffers : rule.scalars;
  throw new OptError("BAD_ARGUMENT", rule.name, `needs the ${kind} ${name}, got none.`, `It takes ${all.join(", ")}.`);
}
