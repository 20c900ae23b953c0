/** Every elementwise op: a line here exports it, and all tables know it. */

export { type GeluOptions, gelu, leakyRelu, relu, sigmoid, silu, softplus } from "./activations";
export { acos, asin, atan, atan2, hypot, sinc, tan } from "./circular";
export { clamp } from "./clamp";
export type { DefinedOp } from "./define-op";
export { elu, hardswish, hardtanh, logsigmoid, mish, prelu, relu6, selu, softshrink } from "./further-activations";
export { acosh, asinh, atanh, cosh, sinh } from "./hyperbolic";
export { lerp } from "./lerp";
export { exp2, log2, log10, logaddexp, logit, xlogy } from "./logarithms";
export { eq, ge, gt, isfinite, isnan, le, logicalAnd, logicalNot, logicalOr, lt, ne } from "./logic";
export { rsqrt, square } from "./powers";
export { floorDivide, fmod, frac, remainder, trunc } from "./remainders";
export { ceil, floor, type RoundOptions, rounded as round, sign } from "./round";
export {
  abs,
  add,
  cos,
  div,
  erf,
  exp,
  expm1,
  fma,
  less,
  log,
  log1p,
  maximum,
  minimum,
  mul,
  neg,
  pow,
  sin,
  sqrt,
  sub,
  tanh,
} from "./rule-ops";
export { copysign, fmax, fmin, heaviside, reciprocal } from "./signs";
export { digamma, erfinv, lgamma } from "./special";
export { maskedFill, where } from "./where";
