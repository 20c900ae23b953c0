/** RMSprop's per-step numbers, in float64. */
import type { Arithmetic, Counters } from "@opt/core";
import type { RMSpropOptions } from "./options";

export function rmspropScalars(
  options: RMSpropOptions,
  _counters: Counters,
  { sub, neg }: Arithmetic,
): Record<string, number> {
  const { lr, alpha, eps, weightDecay, momentum } = options;
  return { decay: weightDecay, alpha, oneMinusAlpha: sub(1, alpha), eps, momentum, negLr: neg(lr) };
}
