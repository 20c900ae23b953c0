/**
 * The ops as functions. They take symbols (inside rules), tensors, or a mix of one of them with numbers;
 * a rule evaluated on tensors therefore is a differentiable step.
 */
export {
  all,
  any,
  argmax,
  argmin,
  argsort,
  cholesky,
  choleskySolve,
  cumprod,
  cumsum,
  det,
  einsum,
  flatten,
  flip,
  gatherAlong,
  type Index,
  type IndexAddOptions,
  type IndexPutOptions,
  type IndexRange,
  indexAdd,
  indexPut,
  inverse,
  logcumsumexp,
  logdet,
  logSoftmax,
  logsumexp,
  maskedSelect,
  matmul,
  maxOver as max,
  mean,
  minOver as min,
  nonzero,
  norm,
  oneHot,
  pad,
  prod,
  repeat,
  reshape,
  roll,
  type Slogdet,
  type SolveOptions,
  type Sorted,
  type SortOptions,
  scatter,
  scatterAdd,
  slogdet,
  softmax,
  solve,
  sort,
  squeeze,
  stack,
  std,
  sum,
  type TriangleOptions,
  topk,
  tril,
  triu,
  unsqueeze,
  variance,
} from "./ops";
export { bincount } from "./ops/composed/bins";
export { allclose, equal } from "./ops/composed/compare";
export * from "./ops/composed/defined";
export type {
  Domain,
  ElementwiseDefinition,
  FunctionDefinition,
  OpDefinition,
  PrimitiveDefinition,
} from "./ops/definition";
export * from "./ops/elementwise/defined";
export { type Unique, type UniqueOptions, unique } from "./ops/indices/unique";
export type { Binary, Ternary, Unary } from "./rule/symbols";
export { at, chunk, expand, permute, select, slice, split, transpose } from "./views";
