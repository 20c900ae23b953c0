/** `@opt/core`: tensors, autograd, update rules, the optimizer loop and the device registry. */

export { type GradOptions, grad, type OneEach } from "./autograd";
export { ExponentialMovingAverage, type MovingAverageOptions } from "./averages/moving-average";
export { StochasticWeightAverage } from "./averages/stochastic-weight-average";
export type { WeightAverage, WeightAverageOptions, WeightAverageState } from "./averages/weight-average";
export type { BackendRegistration } from "./backend/backend";
export { type Compiled, type CompileOptions, compile } from "./compile/compile";
export type { Explanation } from "./compile/explain";
export {
  type CreateOptions,
  empty,
  emptyLike,
  full,
  ones,
  onesLike,
  parameter,
  type RandomOptions,
  rand,
  randn,
  type TensorOptions,
  tensor,
  tensorFromBytes,
  zeros,
  zerosLike,
} from "./create";
export { traceAllocations } from "./device/allocation-trace";
export type { Device } from "./device/device";
export { afterEachRun, dependsOn, runsOnce } from "./device/host-code";
export { type HostIo, hostIo, registerHostIo } from "./device/host-io";
export { observed } from "./device/observed";
export { type DeviceListing, init, listDevices, registerBackend } from "./device/registry";
export { keep, type Scoped, tidy } from "./device/scope";
export { bernoulli, type DrawOptions, type MultinomialOptions, multinomial, randint, randperm } from "./draws";
export { checkValue } from "./errors/check-value";
export { check, type ErrorCode, OptError } from "./errors/errors";
export { nearest } from "./errors/nearest";
export { checkOptions, type OptionKind } from "./errors/options";
export { show } from "./errors/show";
export * from "./functions";
export { GradScaler, type GradScalerOptions, type GradScalerState, type Scalable } from "./loss-scaling/scaler";
export {
  type AttentionForm,
  type AvgPool1dOptions,
  type AvgPool3dOptions,
  type AvgPoolOptions,
  type Axes,
  type AxisTaps,
  adaptiveAvgPool2d,
  applyRule,
  applyRuleInPlace,
  avgPool2d,
  type BatchNormalized,
  binaryCrossEntropyTerms,
  type Combination,
  type Convolution1dOptions,
  type Convolution3dOptions,
  type ConvolutionOptions,
  type ConvTranspose1dCall,
  type ConvTranspose3dCall,
  type ConvTransposeOptions,
  checkTensor,
  concat,
  conv2d,
  convTranspose2d,
  crossEntropyRows,
  fusedAttention,
  fusedBatchNorm,
  fusedGroupNorm,
  fusedLstm,
  gather,
  type LstmOptions,
  type LstmResults,
  layerNorm,
  logAddExp3,
  type MaxPool1dOptions,
  type MaxPool3dOptions,
  type MaxPoolOptions,
  maxPool2d,
  needing,
  type OutputSize2d,
  type OutputSize3d,
  type PadMode,
  type PadOptions,
  type Pair,
  pathSums,
  reduceInto,
  resample,
  type Topk,
  type TopkOptions,
  type Triple,
  unfold,
  type VarianceOptions,
  type WindowOptions,
  withFlatGradient,
  withGradient,
} from "./ops";
export { lowered, widened } from "./ops/autocast-operands";
export { viewAsComplex, viewAsReal } from "./ops/complex";
export type {
  Algorithm,
  Arithmetic,
  BaseOptions,
  ClipOptions,
  Counters,
  GroupOptions,
  InitialState,
} from "./optimizer/algorithm";
export { BaseOptimizer } from "./optimizer/base-optimizer";
export { checkBetas, checkBoolean, checkNotNegative } from "./optimizer/check";
export { type ClipNormOptions, clipGradNorm, clipGradNormEach, clipGradValue } from "./optimizer/gradients/clip";
export { divideGradients } from "./optimizer/gradients/divide";
export { nonFinite, norms } from "./optimizer/gradients/norm";
export { l1, l2, type Regularizer } from "./optimizer/gradients/regularizer";
export type { Group } from "./optimizer/group";
export type { HookName } from "./optimizer/hooks";
export type { Decay, ModificationOptions } from "./optimizer/modifications/options";
export { modifiedRules } from "./optimizer/modifications/update";
export { type Hook, Optimizer } from "./optimizer/optimizer";
export { algorithmOf, type OptimizerClass } from "./optimizer/optimizer-class";
export type { GroupInput, OptimizerInput, Parameters } from "./optimizer/parameters";
export type { Around } from "./optimizer/plan";
export { ruleHashes } from "./optimizer/rule-hashes";
export { StagedOptimizer, type StagedStep, type Stages } from "./optimizer/staged";
export type { Staged } from "./optimizer/staged-launch";
export type { Together } from "./optimizer/staged-together";
export { enableQ8 } from "./optimizer/state/packed-state";
export type { OptimizerState, ParameterStateDict } from "./optimizer/state/state-dict";
export { enableStochasticRounding } from "./optimizer/state/stochastic-rounding";
export { checkGenerator, defaultGenerator, Generator, manualSeed } from "./random/generator";
export { arange, eye, fftfreq, type IndicesOptions, linspace, rfftfreq, trilIndices, triuIndices } from "./ranges";
export { isRecomputing, recompute } from "./recompute";
export { type GatherSparseOptions, gatherSparse } from "./row-sparse/gather-sparse";
export { RowSparse, rowSparse } from "./row-sparse/row-sparse";
export { Expression, type Op, type Operand, type OpName, type RuleOp } from "./rule/expression";
export { fusedLerp } from "./rule/lerp";
export { defineRule, type Rule, type RuleDefinition, type RuleModification } from "./rule/rule";
export { type Choices, everyVariant, ruleByVariant, type VariantOf } from "./rule/variants";
export {
  type Differentiable,
  type EachOf,
  type ForEach,
  type Functional,
  functional,
  type Weights,
} from "./stepping/functional";
export { type FloatArray, type PerParameter, type Steppable, stepArrays } from "./stepping/step-arrays";
export { type AutocastDType, autocast, autocastDType } from "./tensor/autocast";
export { evict, fillAgain, isEvicted } from "./tensor/evict";
export type { BackwardOptions, NestedValues } from "./tensor/fluent";
export { onGradient } from "./tensor/gradient-hooks";
export type { AxisPart, AxisWhole, MeshAxis, Placement, PlacementCut } from "./tensor/placement";
export { hostBytes } from "./tensor/read";
export { markReplaced } from "./tensor/replaced";
export { span } from "./tensor/span";
export { checkNotSummary } from "./tensor/summary";
export { enableGrad, noGrad } from "./tensor/tape";
export { Tensor } from "./tensor/tensor";
export { versionOf } from "./tensor/version-of";
export {
  type DerivativeOptions,
  type FunctionOf,
  hessian,
  hvp,
  jacobian,
  jvp,
  type OneOrMore,
  type PerTensor,
  vjp,
} from "./transforms/derivatives";
export { type Tensors, type VmapOptions, vmap } from "./transforms/vmap";
export type { Bytes, DType, TypedArray } from "./values/dtype";
export type { NestedArray, TensorData } from "./values/literal";
export type { Shape } from "./values/shape";
export { detectAnomaly } from "./watch/anomaly";
export { type Profile, profile, type TraceEvent } from "./watch/profile";
export { CombinedOptimizer, type CombineRouting, combine, type NamedParameters } from "./wrappers/combine";
export { Lookahead, type LookaheadOptions } from "./wrappers/lookahead";
export { SAM, type SAMOptions } from "./wrappers/sam";
export {
  ScheduleFree,
  type ScheduleFreeCounters,
  type ScheduleFreeOptions,
  scheduleFree,
} from "./wrappers/schedule-free";
export type { Wrappable } from "./wrappers/wrapper";
