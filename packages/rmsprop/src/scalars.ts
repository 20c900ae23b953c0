/** RMSprop's per-step numbers, in float64. */
import type { RMSpropOptions } from "./options";

export function rmspropScalars(options: RMSpropOptions): Record<string, number> {
  const { lr, alpha, eps, weightDecay, momentum } = options;
  return { decay: weightDecay, alpha, oneMinusAlpha: 1 - alpha, eps, momentum, negLr: -lr };
}
