/** Rules made from rules: what a step does to the gradient before the rule sees it, and whether its results are kept. */

import { derived } from "./derived";
import type { Expression } from "./expression";
import { defineRule, type Rewrite, type Rule } from "./rule";
import { add, fma, less, maximum, minimum, mul, neg, sub, where } from "./symbols";

/** The gradient from the gradient, the parameter and the rewrite's scalar; a guard keeps all buffers where its scalar is above 0. */
const GRADIENT: Readonly<Record<Rewrite, (grad: Expression, param: Expression, by: Expression) => Expression>> = {
  scale: (grad, _param, by) => mul(grad, by),
  clamp: (grad, _param, limit) => maximum(minimum(grad, limit), neg(limit)),
  l1: (grad, param, penalty) =>
    where(less(param, 0), sub(grad, penalty), where(less(0, param), add(grad, penalty), grad)),
  l2: (grad, param, penalty) => fma(penalty, param, grad),
  guard: (grad) => grad,
};

/** What a rewrite makes of a gradient. Its ops compute on tensors as well. */
export function rewrittenGradient<T>(rewrite: Rewrite, grad: T, param: T, by: T): T {
  const change = GRADIENT[rewrite] as unknown as (grad: T, param: T, by: T) => T;
  return change(grad, param, by);
}

/** The rule after these rewrites, in their order; its first buffers are the parameter and the gradient. Scalar k of theirs comes k-th after the rule's own. */
export function rewritten(rule: Rule, rewrites: readonly Rewrite[]): Rule {
  if (rewrites.length === 0) return rule;
  return derived(rule, rewrites.join(), () => afterRewrites(rule, rewrites));
}

function afterRewrites(rule: Rule, rewrites: readonly Rewrite[]): Rule {
  const names = rewrites.map((rewrite, k) => `${rewrite}By${k}`);
  return {
    ...defineRule({
      name: `${rule.name} after ${rewrites.join(", ")}`,
      buffers: rule.buffers,
      scalars: [...rule.scalars, ...names],
      update(buffers, scalars) {
        const [param, gradient] = rule.buffers as [string, string];
        let grad = buffers[gradient]!;
        rewrites.forEach((rewrite, k) => {
          grad = GRADIENT[rewrite](grad, buffers[param]!, scalars[names[k]!]!);
        });
        const updated = rule.update({ ...buffers, [gradient]: grad }, scalars);
        const guard = names[rewrites.indexOf("guard")];
        if (guard === undefined) return updated;
        const kept = Object.entries(updated).map(([name, value]) => [
          name,
          where(less(0, scalars[guard]!), buffers[name]!, value!),
        ]);
        return Object.fromEntries(kept);
      },
    }),
    rewritten: { rule, rewrites },
  };
}
