/** `@opt/core`: tensors, autograd, update rules, the optimizer loop and the device registry. */

export { traceAllocations } from "./allocation-trace";
export type { BackendRegistration } from "./backend/backend";
export {
  type CreateOptions,
  full,
  ones,
  parameter,
  type RandomOptions,
  rand,
  randn,
  type TensorOptions,
  tensor,
  tensorFromBytes,
  zeros,
} from "./create";
export type { Device } from "./device";
export type { Bytes, DType, TypedArray } from "./dtype";
export { check, type ErrorCode, OptError } from "./errors";
export type { NestedValues } from "./fluent";
export * from "./functions";
export { checkGenerator, defaultGenerator, Generator, manualSeed } from "./generator";
export type { NestedArray, TensorData } from "./literal";
export {
  applyRule,
  checkTensor,
  concat,
  conv2d,
  crossEntropyRows,
  gather,
  layerNorm,
  maxPool2d,
  type Pair,
  unfold,
  type WindowOptions,
} from "./ops";
export type { Algorithm, BaseOptions, Counters, GroupOptions } from "./optimizer/algorithm";
export { checkBetas, checkBoolean, checkNotNegative } from "./optimizer/check";
export { type ClipNormOptions, clipGradNorm, clipGradNormEach, clipGradValue } from "./optimizer/clip";
export { type Group, Optimizer } from "./optimizer/optimizer";
export type { GroupInput, OptimizerInput, Parameters } from "./optimizer/parameters";
export { l1, l2, type Regularizer } from "./optimizer/regularizer";
export type { OptimizerState, ParameterStateDict } from "./optimizer/state-dict";
export { checkOptions, type OptionKind } from "./options";
export { guardReplays } from "./recorder";
export type { Recording } from "./recording";
export { type DeviceListing, init, listDevices, registerBackend } from "./registry";
export { Expression, type Op, type Operand, type RuleOp } from "./rule/expression";
export { defineRule, type Rule, type RuleDefinition } from "./rule/rule";
export { keep, tidy } from "./scope";
export type { Shape } from "./shape";
export { show } from "./show";
export { enableGrad, noGrad } from "./tape";
export { Tensor } from "./tensor";
