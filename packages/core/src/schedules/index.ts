// Learning-rate schedules with the numbers of PyTorch 2.13, and PaddlePaddle's beside them.
export {
  ConstantLR,
  type ConstantLROptions,
  CosineAnnealingLR,
  type CosineAnnealingLROptions,
  ExponentialLR,
  type ExponentialLROptions,
  LinearLR,
  type LinearLROptions,
  MultiplicativeLR,
  MultiStepLR,
  type MultiStepLROptions,
  PolynomialLR,
  type PolynomialLROptions,
  StepLR,
  type StepLROptions,
} from "./chainable";
export {
  CosineAnnealingWarmRestarts,
  type CosineAnnealingWarmRestartsOptions,
  InverseTimeLR,
  type InverseTimeLROptions,
  LambdaLR,
  type LambdaLROptions,
  type LRLambda,
  NaturalExpLR,
  type NaturalExpLROptions,
  NoamLR,
  type NoamLROptions,
  PiecewiseLR,
  type PiecewiseLROptions,
} from "./closed-forms";
export { ChainedScheduler, SequentialLR, type SequentialLROptions } from "./composites";
export { CyclicLR, type CyclicLROptions } from "./cyclic";
export { LinearWarmupLR, type LinearWarmupLROptions } from "./linear-warmup";
export { OneCycleLR, type OneCycleLROptions } from "./one-cycle";
export { ReduceLROnPlateau, type ReduceLROnPlateauOptions } from "./reduce-on-plateau";
export type { PerGroup, ScheduledGroup, ScheduledOptimizer, ScheduleOptions } from "./scheduler/scheduled-optimizer";
export { LRScheduler } from "./scheduler/scheduler";
export type { SchedulerState } from "./scheduler/state";
export { SWALR, type SWALROptions } from "./swa";
export { WarmupStableDecayLR, type WarmupStableDecayLROptions } from "./warmup-stable-decay";
