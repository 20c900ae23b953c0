/** Every op that `defineOp` made: a line here exports it, and all tables know it. */

export { acos, asin, atan, atan2, hypot, sinc, tan } from "./circular";
export type { DefinedOp, OpDefinition } from "./define-op";
export type { ElementwiseDefinition } from "./elementwise-table";
export { acosh, asinh, atanh, cosh, sinh } from "./hyperbolic";
export { exp2, log2, log10, logit, xlogy } from "./logarithms";
export { floorDivide, fmod, frac, remainder, trunc } from "./remainders";
export { copysign, fmax, fmin, heaviside, reciprocal } from "./signs";
export { digamma, erfinv, lgamma } from "./special";
