/**
 * The ops as functions. They take symbols (inside rules), tensors, or a mix of one of them with numbers;
 * a rule evaluated on tensors therefore is a differentiable step.
 */
import { elementwise, softmax as softmaxOf } from "./ops";
import type { Tensor } from "./tensor/tensor";

export {
  all,
  angle,
  any,
  argmax,
  argmin,
  argsort,
  ceil,
  cholesky,
  choleskySolve,
  clamp,
  complex,
  complexAbs,
  complexEinsum,
  complexMul,
  conj,
  cumprod,
  cumsum,
  det,
  type Eigen,
  eigh,
  eigvalsh,
  einsum,
  elu,
  type FftnOptions,
  type FftOptions,
  fft,
  fft2,
  fftn,
  fftshift,
  flatten,
  flip,
  floor,
  type GeluOptions,
  gatherAlong,
  gelu,
  hardswish,
  hardtanh,
  type Index,
  type IndexAddOptions,
  type IndexPutOptions,
  type IndexRange,
  ifft,
  ifft2,
  ifftn,
  ifftshift,
  imag,
  indexAdd,
  indexPut,
  inverse,
  irfft,
  irfft2,
  isfinite,
  isnan,
  type LeastSquares,
  type LstsqOptions,
  type Lu,
  leakyRelu,
  lerp,
  logaddexp,
  logcumsumexp,
  logdet,
  logicalAnd,
  logicalNot,
  logicalOr,
  logsigmoid,
  logsumexp,
  lstsq,
  lu,
  type MatrixOrder,
  maskedFill,
  maskedSelect,
  matrixExp,
  matrixNorm,
  matrixPower,
  maxOver as max,
  mean,
  minOver as min,
  mish,
  nonzero,
  norm,
  oneHot,
  type PinvOptions,
  pad,
  pinv,
  polar,
  prelu,
  prod,
  type Qr,
  type QrOptions,
  qr,
  type RoundOptions,
  real,
  relu6,
  repeat,
  reshape,
  rfft,
  rfft2,
  roll,
  round,
  rsqrt,
  type Slogdet,
  type SolveOptions,
  type Sorted,
  type SortOptions,
  type Svd,
  type SvdOptions,
  scatter,
  scatterAdd,
  selu,
  sign,
  silu,
  slogdet,
  softplus,
  solve,
  sort,
  square,
  squeeze,
  stack,
  std,
  sum,
  svd,
  svdvals,
  type TriangleOptions,
  type TriangularSolveOptions,
  topk,
  triangularSolve,
  tril,
  triu,
  unsqueeze,
  variance,
} from "./ops";
export { bincount } from "./ops/composed/bins";
export { allclose, equal } from "./ops/composed/compare";
export * from "./ops/composed/defined";
export * from "./ops/elementwise/defined";
export { type Unique, type UniqueOptions, unique } from "./ops/indices/unique";
export {
  abs,
  add,
  type Binary,
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
  type Ternary,
  tanh,
  type Unary,
  where,
} from "./rule/symbols";
export { matmul } from "./tensor-methods";
export { at, chunk, expand, permute, select, slice, split, transpose } from "./views";

/** 1 / (1 + exp(-x)) */
export const sigmoid = (x: Tensor): Tensor => elementwise("sigmoid", [x]);
/** max(x, 0) */
export const relu = (x: Tensor): Tensor => elementwise("relu", [x]);
/** exp(x) / sum(exp(x)) over an axis. */
export const softmax = (x: Tensor, axis = -1): Tensor => softmaxOf(x, axis, false);
/** log(exp(x) / sum(exp(x))) over an axis. */
export const logSoftmax = (x: Tensor, axis = -1): Tensor => softmaxOf(x, axis, true);
/** 1 where equal, 0 elsewhere, as bool: NaN equals nothing. */
export const eq = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("eq", [a, b]);
/** Where they differ, as bool: also where one is NaN. */
export const ne = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("ne", [a, b]);
/** a < b, as bool. */
export const lt = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("less", [a, b], "lt");
/** a <= b, as bool. */
export const le = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("le", [a, b]);
/** a > b, as bool. */
export const gt = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("less", [b, a], "gt");
/** a >= b, as bool. */
export const ge = (a: Tensor | number, b: Tensor | number): Tensor => elementwise("le", [b, a], "ge");
