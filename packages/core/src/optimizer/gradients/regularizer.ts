/** L1 and L2 penalties. They rewrite the rule, so that the step stays one launch. */
import { check } from "../../errors/errors";
import { show } from "../../errors/show";

export interface Regularizer {
  readonly kind: "l1" | "l2";
  readonly coefficient: number;
}

/** grad += coefficient * sign(param): the gradient of coefficient * sum(|param|). @throws OptError BAD_ARGUMENT */
export function l1(coefficient: number): Regularizer {
  return checked({ kind: "l1", coefficient });
}

/** grad += coefficient * param: the gradient of coefficient / 2 * sum(param^2), torch's `weight_decay`. @throws OptError BAD_ARGUMENT */
export function l2(coefficient: number): Regularizer {
  return checked({ kind: "l2", coefficient });
}

/** A checked copy: the plan of a step must not change with the original. @throws OptError BAD_ARGUMENT */
export function checked(regularizer: Regularizer): Regularizer {
  const { kind, coefficient } = Object(regularizer) as Regularizer;
  check(
    (kind === "l1" || kind === "l2") && Number.isFinite(coefficient) && coefficient >= 0,
    "BAD_ARGUMENT",
    "regularizer",
    () =>
      `must be l1 or l2 with a finite coefficient >= 0, or null, got ${show(regularizer)} of ${show(kind)}, ${show(coefficient)}.`,
    "Make it with l1(0.01) or l2(0.01).",
  );
  return { kind, coefficient };
}
