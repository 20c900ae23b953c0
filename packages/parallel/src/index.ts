/** `@opt/parallel`: ranks that train together. */

import "./engine/single";
import "./local/register";

export { Communicator } from "./communicator/communicator";
export type { Traffic } from "./communicator/world";
export { type TrainingCost, type TrainingCostOptions, trainingCost } from "./cost/training-cost";
export { DataParallel, type DataParallelOptions, type Trainable } from "./data-parallel/data-parallel";
export { type ConnectOptions, connect } from "./engine/connect";
export type { AllReduce, Engine, EngineRegistration, Move, Reduction } from "./engine/engine";
export { registerEngine } from "./engine/registry";
export { mesh, ProcessMesh } from "./mesh/mesh";
export {
  DistributedSampler,
  type DistributedSamplerOptions,
  type DistributedSamplerState,
} from "./sampler/distributed-sampler";
export { type ShardedContents, ShardedOptimizer } from "./sharded/sharded-optimizer";
export {
  ColumnParallelLinear,
  type ColumnParallelLinearOptions,
  DividedLayer,
  ParallelEmbedding,
  RowParallelLinear,
  type RowParallelLinearOptions,
} from "./tensor-parallel/layers";
export { layoutOf } from "./tensor-parallel/layout-of";
