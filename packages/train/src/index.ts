/** `@opt/train`: training loops with callbacks, metrics and progress. */

export { type CheckpointsOptions, checkpoints } from "./callbacks/checkpoints";
export { type CsvOptions, csv } from "./callbacks/csv";
export { type EarlyStoppingOptions, earlyStopping } from "./callbacks/early-stopping";
export { type LoggerOptions, type LogRecord, logger } from "./callbacks/logger";
export { type PageElement, type ProgressOptions, type ProgressStream, progress } from "./callbacks/progress";
export { type TensorBoardOptions, tensorBoard } from "./callbacks/tensor-board";
export { type FitRun, fit } from "./fit";
export { type EvaluateOptions, evaluate, predict } from "./fit/evaluate";
export type {
  Callback,
  ContentsOptions,
  EpochRecord,
  EventHandler,
  FitControl,
  FitEvent,
  FitEventType,
  FitState,
  History,
} from "./fit/events";
export type { FitOptions } from "./fit/options";
export type {
  FitCommunicator,
  FitData,
  FitOptimizer,
  FitSchedule,
  Forwarded,
  ForwardOptions,
  NamedTensors,
  ParallelModel,
  Placing,
  Replica,
  SummedLoss,
  Weights,
} from "./fit/parts";
export { type FindLearningRateOptions, findLearningRate, type LearningRates } from "./look/find-learning-rate";
export { type PlotOptions, plot } from "./look/plot";
export { summary } from "./look/summary";
export { type Metric, type MetricDefinition, sumMetric } from "./metrics/metric";
export { accuracy, f1, meanAbsoluteError, perplexity } from "./metrics/metrics";
export { SummaryWriter, type SummaryWriterOptions } from "./tensor-board/summary-writer";
