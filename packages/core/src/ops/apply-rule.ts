/** A rule evaluated on tensors: the differentiable optimizer step. */

import { tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { isPlainObject, show } from "../errors/show";
import type { Rule } from "../rule/rule";
import { Tensor } from "../tensor/tensor";
import { computeDType } from "../values/dtype";
import { sameShape, showShape } from "../values/shape";
import { cast } from "./cast";
import { elementwise, evaluate } from "./elementwise/elementwise";
import { fill } from "./map";
import { reshape } from "./shape/shape";

/**
 * Computes a rule with tensor ops, so that gradients flow through the step (unrolled optimisation, learned learning rates).
 * Nothing is updated in place: the new values are returned. All is computed in the dtype of a launch: float32, or float64 where
 * the first buffer is f64.
 *
 * @param scalars numbers, or tensors of one element to differentiate by
 * @throws OptError BAD_ARGUMENT if a buffer or scalar is missing, BAD_SHAPE if buffers differ in shape or a scalar has many elements
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
  const where = "applyRule";
  checkIsRule(where, rule);
  for (const [name, values] of Object.entries({ buffers, scalars })) {
    const advice = "For example { param: w }.";
    checkValue(isPlainObject(values), where, name, "values by name", values, advice);
  }
  return tidy(() => {
    const given = rule.buffers.map((name) => bufferOf(rule, name, buffers[name]));
    const numbers = rule.scalars.map((name) => scalarOf(rule, name, scalars[name]));
    const { dtype, shape, device } = given[0]!;
    for (const [slot, buffer] of given.entries()) {
      check(
        sameShape(buffer.shape, shape),
        "BAD_SHAPE",
        rule.name,
        () => `${rule.buffers[slot]} must have shape ${showShape(shape)}, got ${showShape(buffer.shape)}.`,
        "All buffers have one shape.",
      );
    }
    const compute = computeDType(dtype);
    const inCompute = (value: Tensor | number) => (value instanceof Tensor ? cast(value, compute) : value);
    const values = evaluate(
      rule.program,
      compute,
      given.map((buffer) => cast(buffer, compute)),
      numbers.map(inCompute),
    );
    const result: Partial<Record<Buffer, Tensor>> = {};
    for (const { slot, node } of rule.program.outputs) {
      const value = values[node]!;
      const isOwn = value instanceof Tensor && sameShape(value.shape, shape) && !given.includes(value);
      const whole = isOwn ? value : elementwise("mul", [fill(shape, 1, compute, device), value]);
      result[rule.buffers[slot]!] = cast(whole, given[slot]!.dtype);
    }
    return result;
  });
}

/** @throws OptError BAD_ARGUMENT */
export function checkIsRule(where: string, rule: unknown): void {
  const isRule = Array.isArray((rule as Rule | null | undefined)?.program?.nodes);
  checkValue(isRule, where, "rule", "a rule", rule, "Make it by defineRule.");
}

/** @throws OptError BAD_ARGUMENT */
export function bufferOf(rule: Rule, name: string, value: Tensor | undefined): Tensor {
  check(
    value instanceof Tensor,
    "BAD_ARGUMENT",
    rule.name,
    () => `needs the buffer ${name} as a tensor, got ${show(value)}.`,
    `It takes ${rule.buffers.join(", ")}.`,
  );
  return value;
}

/** A number, or a tensor without dimensions, which no result takes its shape from. @throws OptError BAD_ARGUMENT, BAD_SHAPE */
export function scalarOf(rule: Rule, name: string, value: Tensor | number | undefined): Tensor | number {
  if (typeof value === "number") return value;
  check(
    value instanceof Tensor,
    "BAD_ARGUMENT",
    rule.name,
    () => `needs the scalar ${name} as a number or a tensor, got ${show(value)}.`,
    `It takes ${rule.scalars.join(", ")}.`,
  );
  check(
    value.size === 1,
    "BAD_SHAPE",
    rule.name,
    () => `the scalar ${name} must have one element, got shape ${showShape(value.shape)}.`,
    "What differs between elements is a buffer.",
  );
  return value.shape.length === 0 ? value : reshape(value, []);
}
