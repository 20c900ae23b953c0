/** Linear interpolation in rules. */
import type { Expression } from "./expression";
import { abs, fma, less, sub, where } from "./symbols";

/** start + weight * (end - start) by one fused multiply-add, from the nearer end, as PyTorch's lerp computes it. */
export function fusedLerp(start: Expression, end: Expression, weight: Expression): Expression {
  const isNearStart = less(abs(weight), 0.5);
  const factor = where(isNearStart, weight, sub(weight, 1));
  return fma(factor, sub(end, start), where(isNearStart, start, end));
}
