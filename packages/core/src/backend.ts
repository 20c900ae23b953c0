/** `@opt/core/backend`: what a device package needs, and nothing that a user of tensors does. */

export type { Backend, BackendRegistration, Place, PreparedLaunches } from "./backend/backend";
export {
  type FieldKind,
  type FieldStruct,
  type FieldWriter,
  fieldsOf,
  rowElements,
  type SizeType,
  type SliceType,
  windowElements,
  windowFields,
} from "./backend/fields";
export type {
  BidiagonalUpdate,
  FourierBlocks,
  FourierTransform,
  HostArguments,
  HostKernels,
  RealFourierTransform,
  ReflectRows,
  RotateRows,
  SumOfRows,
  TridiagonalUpdate,
  Turns,
} from "./backend/host-kernels";
export { memoriesOf, movedLaunch, writesOf } from "./backend/launches";
export type { Memory, Scalar, Slice } from "./backend/memory";
export type {
  AttentionInputs,
  AttentionSizes,
  ChannelSizes,
  EpilogueArguments,
  FusedKind,
  HeadStrides,
  Kernel,
  Kind,
  Launch,
  LaunchArguments,
  PlainKind,
  SequenceSizes,
  SlicesOfRows,
  Spec,
  Specs,
  Window2d,
} from "./backend/spec";
export { denseHeads, FUSED_KINDS, headShapes, specKey } from "./backend/spec";
export { staggeredBytes, staggeredStart } from "./backend/stagger";
export { inEachRun } from "./device/host-code";
export { type KernelSources, kernelSources } from "./device/kernel-sources";
export { registerBackend } from "./device/registry";
export type { Overwritable, Traceable } from "./device/tracer";
export { block, indent } from "./emit/blocks";
export type { Dialect, OpText, OpTexts } from "./emit/dialect";
export { javascript, writeRuleLoop } from "./emit/javascript";
export { type RowElement, type RowLanguage, RowWriter } from "./emit/rows";
export { type Access, type Statements, writeStatements } from "./emit/statements";
export { environmentVariable } from "./host/environment";
export { loadBinary, type NativeBinary, platformName } from "./host/native-binary";
export { isCarried } from "./js/carried";
export { openCompleteJsBackend as openJsBackend } from "./js/complete";
export { functionOf } from "./js/generated";
export { interpretRows, type RowArrays } from "./js/interpret-rows";
export { LONGEST_CHAIN } from "./js/matmul";
export { type Spectrum, spectrumOf } from "./ops/fft/spectrum";
export { type Transform, transformOf } from "./ops/fft/transform";
export { ownHostKernels } from "./ops/host-kernels";
export { launchRows, type RowsLaunch } from "./ops/rows/launch-rows";
export { isStaged } from "./optimizer/modifications/check";
export {
  type ModifiedUpdate,
  modifiedRule,
  movesRule,
  outcomeRule,
  type UpdateOutcome,
} from "./optimizer/modifications/update";
export { renewState } from "./optimizer/renewal";
export { copiesIn } from "./optimizer/state/state-dict";
export { axesOf, largestOf } from "./placement/across";
export { ownersOf } from "./placement/owners";
export { inWholes, partsOfWholes, wholesOf } from "./placement/wholes";
export {
  blockBytes,
  type Codebook,
  type CodedDType,
  codebookOf,
  isPacked,
  LEAST_SCALE,
  PACKED_BLOCK,
  type PackedDType,
  packedBytes,
  packedHead,
} from "./rule/codebook";
export { distinctByHash } from "./rule/distinct";
export { erf } from "./rule/erf";
export {
  ARITY,
  type BitOp,
  isTranscendental,
  type Op,
  RULE_OPS,
  type RuleOp,
  TRANSCENDENTAL_OPS,
} from "./rule/expression";
export { fma32, fma64 } from "./rule/fma";
export { FUNCTION_NAMES, type FunctionDefinition, type FunctionName, functionDefinition } from "./rule/functions";
export { evaluateFunction, evaluateOp, interpret } from "./rule/interpret";
export { type Node, type Program, trace } from "./rule/program";
export { rewritten } from "./rule/rewrite";
export { DIVISOR_REACH, type MultipliedRoots, multipliedRoots } from "./rule/root-division";
export { DRAW_FACTORS, isRandom, withoutDraws } from "./rule/rounding";
export { crossEntropyGradRows, crossEntropyRows } from "./rule/row-programs/cross-entropy";
export { layerNormGradAddRows, layerNormGradRows, layerNormRows } from "./rule/row-programs/layer-norm";
export { logSoftmaxGradRows, logSoftmaxRows, softmaxGradRows, softmaxRows } from "./rule/row-programs/softmax";
export {
  type ResultOfColumns,
  type ResultOfRow,
  resultsOfColumns,
  resultsOfRows,
  rootsOf,
} from "./rule/rows/results";
export {
  atLabel,
  columns,
  defineRows,
  keptWeights,
  largest,
  narrow,
  neededFor,
  partsOf,
  type RowDefinition,
  type RowExpression,
  type RowInput,
  type RowNode,
  type RowOp,
  type RowOutput,
  type RowProgram,
  type RowReduction,
  type RowResult,
  type Rows,
  sum,
  weight,
  widen,
} from "./rule/rows/row-program";
export type { Rewrite, Rule } from "./rule/rule";
export { interpretRule, type RandomDType, type StoredDType, type StoredFormats, withMirror } from "./rule/stored";
export { type RuleStep, type RuleSteps, ruleSteps } from "./stepping/rule-steps";
export { boxAfter } from "./tensor/placement";
export { isTaping } from "./tensor/tape";
export type { ComputeDType, MapDType, NumberDType as DType, TypedArray } from "./values/dtype";
export { byteSize, viewElements } from "./values/dtype";
export { partOf } from "./values/part-of";
export { denseStrides, sizeOf } from "./values/shape";
export { isDense, mergeDimensions, reach } from "./values/strides";
