/** `@opt/checkpoint`: sharded checkpoints that are saved, loaded, merged, re-sliced, verified, compared and converted. */
export type { Box } from "./box";
export { type Communicator, communicatorOver, localCommunicators, singleProcess } from "./communicator";
export { type ConvertOptions, type ConvertResult, type ConvertTarget, convertCheckpoint } from "./convert";
export { type Difference, type DiffOptions, type DiffResult, diffCheckpoints } from "./diff";
export type { StoredDType } from "./dtype";
export { type FileSystem, nodeFileSystem } from "./file-system";
export { type InspectedTensor, type Inspection, inspectCheckpoint } from "./inspect";
export { defaultLayout, type Layout, type Mesh, type Split, type TensorLayout, type UnevenRule } from "./layout";
export { type Loaded, type LoadedPlainTensor, type LoadOptions, loadCheckpoint, type Slice } from "./load";
export { type MergeOptions, type MergeResult, mergeCheckpoint } from "./merge";
export { type OpenOptions, openSource } from "./open";
export { type OptimizerContents, optimizerContents, optimizerState } from "./optimizer-state";
export type { ProgressCallback } from "./progress";
export { type ReshardOptions, type ReshardResult, reshardCheckpoint } from "./reshard";
export { type CheckpointContents, type SaveOptions, type SaveResult, saveCheckpoint } from "./save";
export type { Json, Role, SourceBox, SourceTensor, TensorSource } from "./source";
export type { AnnotatedTensor, PartialTensor, PlainTensor, SavedTensor } from "./tensors";
export { type Problem, type VerifyOptions, type VerifyResult, verifyCheckpoint } from "./verify";
