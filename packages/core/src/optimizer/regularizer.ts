/** L1 and L2 penalties: added to the gradient by rewriting the rule, so that the step stays one launch. */
import { check } from "../errors/errors";
import type { Expression } from "../rule/expression";
import { defineRule, type Rule } from "../rule/rule";
import { add, fma, less, select, sub } from "../rule/symbols";

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

export function checked(regularizer: Regularizer): Regularizer {
  const { kind, coefficient } = Object(regularizer) as Partial<Regularizer>;
  check(
    (kind === "l1" || kind === "l2") && Number.isFinite(coefficient) && coefficient! >= 0,
    "BAD_ARGUMENT",
    "regularizer",
    () => `must be l1 or l2 with a finite coefficient >= 0, or null, got ${JSON.stringify(regularizer)}.`,
    "Make it with l1(0.01) or l2(0.01).",
  );
  return regularizer;
}

/** The scalar that regularized rules take last. */
export const PENALTY = "penalty";

const PENALIZED = {
  l1: (grad: Expression, param: Expression, penalty: Expression) =>
    select(less(param, 0), sub(grad, penalty), select(less(0, param), add(grad, penalty), grad)),
  l2: (grad: Expression, param: Expression, penalty: Expression) => fma(penalty, param, grad),
};

/** By the rule itself: rules that compute the same, and so have one hash, may call their scalars otherwise. */
const penalizedRules = { l1: new WeakMap<Rule, Rule>(), l2: new WeakMap<Rule, Rule>() };

/** The rule that first adds a penalty to the gradient. Penalties follow `maximize`: pass the coefficient negated. */
export function regularized(rule: Rule, kind: Regularizer["kind"]): Rule {
  const known = penalizedRules[kind].get(rule);
  if (known !== undefined) return known;
  const made = defineRule({
    name: `${rule.name}${kind === "l1" ? "L1" : "L2"}`,
    buffers: rule.buffers,
    scalars: [...rule.scalars, PENALTY],
    update(buffers, scalars) {
      const grad = PENALIZED[kind](buffers.grad!, buffers.param!, scalars[PENALTY]!);
      return rule.update({ ...buffers, grad }, scalars);
    },
  });
  penalizedRules[kind].set(rule, made);
  return made;
}
