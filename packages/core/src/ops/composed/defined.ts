/** Every function that `defineFunction` made: a line here exports it, and all tables know it. */

export {
  bitwiseAnd,
  bitwiseLeftShift,
  bitwiseNot,
  bitwiseOr,
  bitwiseRightShift,
  bitwiseXor,
} from "../elementwise/bits";
export { adaptiveMaxPool2d } from "../windows/adaptive-max-pool";
export {
  adaptiveAvgPool1d,
  adaptiveMaxPool1d,
  avgPool1d,
  conv1d,
  convTranspose1d,
  maxPool1d,
} from "../windows/sequences";
export { adaptiveAvgPool3d, adaptiveMaxPool3d, avgPool3d, maxPool3d } from "../windows/volume-pools";
export { conv3d, convTranspose3d } from "../windows/volumes";
export { fold } from "../windows/windows";
export {
  atleast1d,
  atleast2d,
  atleast3d,
  diagonal,
  diff,
  dstack,
  hstack,
  movedim,
  tensorSplit,
  tile,
  unflatten,
  vstack,
} from "./axes";
export {
  type BincountOptions,
  bucketize,
  type HistcOptions,
  histc,
  type SearchsortedOptions,
  searchsorted,
} from "./bins";
export {
  countNonzero,
  type IscloseOptions,
  isclose,
  isinf,
  type NanToNumOptions,
  nanmean,
  nansum,
  nanToNum,
} from "./compare";
export { aminmax, cummax, cummin, type Found, kthvalue, median, nanmedian, quantile } from "./order";
export { cdist, cross, kron, outer, tensordot, trace, vdot } from "./pairs";
export { diag, glu, meshgrid, repeatInterleave, rot90, unbind } from "./parts";
export { indexSelect, maskedScatter, take, takeAlongDim } from "./picks";
export { type Reduction, type ScatterReduceOptions, scatterReduce } from "./scatter-reduce";
