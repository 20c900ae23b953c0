/** Functions of JavaScript that modules may import: what float64 needs and SIMD does not have. */
import { erf, evaluateOp, fma64 } from "@opt/core/backend";

export const HOST_FUNCTIONS = {
  fma64,
  exp: Math.exp,
  log: Math.log,
  tanh: Math.tanh,
  erf,
  sin: Math.sin,
  cos: Math.cos,
  log1p: Math.log1p,
  expm1: Math.expm1,
  pow: (a: number, b: number) => evaluateOp("pow", "f64", a, b),
} as const;

export type HostFunction = keyof typeof HOST_FUNCTIONS;
