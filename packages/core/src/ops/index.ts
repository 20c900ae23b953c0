export { applyRule } from "./apply-rule";
export { applyRuleInPlace } from "./apply-rule-in-place";
export { cast, clone, copyInto, move, owned } from "./cast";
export { checkAnyTensor, checkTensor } from "./check-tensor";
export {
  angle,
  complex,
  complexAbs,
  complexEinsum,
  complexMul,
  conj,
  imag,
  polar,
  real,
} from "./complex-numbers";
export { einsum } from "./einsum";
export { exactGelu } from "./elementwise/activations";
export * from "./elementwise/defined";
export { elementwise } from "./elementwise/elementwise";
export { binaryCrossEntropyTerms, logAddExp3 } from "./elementwise/loss-terms";
export { chosen } from "./elementwise/where";
export {
  type FftnOptions,
  type FftOptions,
  fft,
  fft2,
  fftn,
  fftshift,
  ifft,
  ifft2,
  ifftn,
  ifftshift,
  irfft,
  irfft2,
  rfft,
  rfft2,
} from "./fft/fft";
export { withFlatGradient } from "./flat-gradient";
export { type AttentionForm, fusedAttention } from "./fused/attention";
export { type BatchNormalized, fusedBatchNorm } from "./fused/batch-norm";
export { fusedGroupNorm } from "./fused/group-norm";
export { fusedLstm, type LstmOptions, type LstmResults } from "./fused/lstm";
export { pathSums } from "./fused/path-sums";
export { assign } from "./indexing/assign";
export { type IndexPutOptions, indexPut } from "./indexing/index-put";
export type { Index, IndexRange } from "./indexing/parse-index";
export { gather } from "./indices/gather";
export { gatherAlong } from "./indices/gather-along";
export { maskedSelect, nonzero } from "./indices/masked";
export { oneHot } from "./indices/one-hot";
export { type IndexAddOptions, indexAdd, scatter, scatterAdd } from "./indices/scatter";
export { cholesky, choleskySolve, type TriangleOptions } from "./linear-algebra/cholesky";
export { det, logdet, type Slogdet, slogdet } from "./linear-algebra/determinant";
export { type Eigen, eigh, eigvalsh } from "./linear-algebra/eigh";
export { type Lu, lu } from "./linear-algebra/lu";
export { type MatrixOrder, matrixExp, matrixNorm, matrixPower } from "./linear-algebra/matrix-functions";
export { type LeastSquares, type LstsqOptions, lstsq, type PinvOptions, pinv } from "./linear-algebra/pinv";
export { type Qr, type QrOptions, qr } from "./linear-algebra/qr";
export { inverse, type SolveOptions, solve } from "./linear-algebra/solve";
export { type Svd, type SvdOptions, svd, svdvals } from "./linear-algebra/svd";
export { type TriangularSolveOptions, triangularSolve } from "./linear-algebra/triangular-solve";
export { addInto, fill, fillInPlace } from "./map";
export { matmul } from "./matmul";
export { needing } from "./needing";
export { overwrite } from "./overwrite";
export { cumprod, cumsum } from "./reduce/cumsum";
export { argmax, argmin, maxOver, minOver } from "./reduce/largest";
export { logcumsumexp, logsumexp } from "./reduce/logsumexp";
export { norm } from "./reduce/norm";
export { prod } from "./reduce/prod";
export { type Axes, mean, sum } from "./reduce/reduce";
export { argsort, type Sorted, type SortOptions, sort } from "./reduce/sort";
export { type Topk, type TopkOptions, topk } from "./reduce/topk";
export { allTrue as all, anyTrue as any } from "./reduce/truth";
export { std, type VarianceOptions, variance } from "./reduce/variance";
export { type Combination, reduceInto } from "./reduce-into";
export { crossEntropyRows } from "./rows/cross-entropy";
export { layerNorm } from "./rows/layer-norm";
export { logSoftmax, softmax, softmaxOf } from "./rows/softmax";
export { expand, flatten, squeeze, unsqueeze } from "./shape/extents";
export { chunk, split, stack } from "./shape/join";
export { type PadMode, type PadOptions, pad } from "./shape/pad";
export { flip, repeat, roll } from "./shape/repeat";
export { concat, permute, reshape, slice, transpose } from "./shape/shape";
export { tril, triu } from "./shape/triangle";
export { type AvgPoolOptions, adaptiveAvgPool2d, avgPool2d } from "./windows/average-pool";
export { type ConvolutionOptions, type ConvTransposeOptions, conv2d, convTranspose2d } from "./windows/convolution";
export type { OutputSize2d } from "./windows/parts";
export { type AxisTaps, resample } from "./windows/resample";
export type {
  AvgPool1dOptions,
  Convolution1dOptions,
  ConvTranspose1dCall,
  MaxPool1dOptions,
} from "./windows/sequences";
export type { AvgPool3dOptions, MaxPool3dOptions, OutputSize3d } from "./windows/volume-pools";
export type { Convolution3dOptions, ConvTranspose3dCall, Triple } from "./windows/volumes";
export { type MaxPoolOptions, maxPool2d, type Pair, unfold, type WindowOptions } from "./windows/windows";
export { withGradient } from "./with-gradient";
