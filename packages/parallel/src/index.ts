/** `@opt/parallel`: ranks that train together. */

import "./data-parallel/register";
import "./mesh/register";
import "./engine/single";
import "./local/register";

export type { NamedTensors, Placing, Replica, Replicable } from "./communicator/above";
export { Communicator } from "./communicator/communicator";
export type { Traffic } from "./communicator/world";
export { type ConnectOptions, connect } from "./connect";
export { type TrainingCost, type TrainingCostOptions, trainingCost } from "./cost/training-cost";
export { DataParallel, type DataParallelOptions } from "./data-parallel/data-parallel";
export type { Trainable } from "./data-parallel/parameters";
export type { AllReduce, Engine, EngineRegistration, Move, Reduction } from "./engine/engine";
export { registerEngine } from "./engine/registry";
export { FullyShardedDataParallel, type FullyShardedDataParallelOptions } from "./fully-sharded/fully-sharded";
export { layoutOf } from "./layout-of";
export { mesh, ProcessMesh } from "./mesh/mesh";
export {
  DistributedSampler,
  type DistributedSamplerOptions,
  type DistributedSamplerState,
} from "./sampler/distributed-sampler";
export {
  type ClosureOptimizer,
  type ClosureOptimizerClass,
  type OptimizerMaker,
  type ShardedContents,
  ShardedOptimizer,
} from "./sharded/sharded-optimizer";
export { SyncBatchNorm } from "./sync-batch-norm/sync-batch-norm";
export {
  ColumnParallelLinear,
  type ColumnParallelLinearOptions,
  DividedLayer,
  ParallelEmbedding,
  RowParallelLinear,
  type RowParallelLinearOptions,
} from "./tensor-parallel/layers";
