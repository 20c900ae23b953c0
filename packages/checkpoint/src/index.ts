/** `@opt/checkpoint`: sharded checkpoints that are saved, loaded, merged, re-sliced, verified, compared and converted. */

export { type ConvertOptions, type ConvertResult, type ConvertTarget, convertCheckpoint } from "./export/convert";
export type { StoredDType } from "./format/dtype";
export { type OptimizerContents, optimizerContents, optimizerState } from "./format/optimizer-state";
export type { Json, Role, SourceBox, SourceTensor, TensorSource } from "./format/source";
export type { AnnotatedTensor, PartialTensor, PlainTensor, SavedTensor } from "./format/tensors";
export type { Rename } from "./import/names/rename";
export type { Box } from "./layout/box";
export { defaultLayout, type Layout, type Mesh, type Split, type TensorLayout, type UnevenRule } from "./layout/layout";
export { type Difference, type DiffOptions, type DiffResult, diffCheckpoints } from "./read/diff";
export { type InspectedTensor, type Inspection, inspectCheckpoint } from "./read/inspect";
export { type Loaded, type LoadedPlainTensor, type LoadOptions, loadCheckpoint, type Slice } from "./read/load";
export { type MergeOptions, type MergeResult, mergeCheckpoint } from "./read/merge";
export { type OpenOptions, openSource } from "./read/open";
export { type ReshardOptions, type ReshardResult, reshardCheckpoint } from "./read/reshard";
export type { Selection } from "./read/select";
export { type Problem, type VerifyOptions, type VerifyResult, verifyCheckpoint } from "./read/verify";
export { type CleanOptions, type CleanResult, cleanCheckpoints } from "./save/clean";
export { type Communicator, communicatorOver, localCommunicators, type Meet, singleProcess } from "./save/communicator";
export type { Leftover } from "./save/leftovers";
export type { Retention } from "./save/retention";
export { type CheckpointContents, type SaveOptions, type SaveResult, type Saving, saveCheckpoint } from "./save/save";
export { type FileSystem, type FolderEntry, nodeFileSystem, type OpenFile } from "./stores/file-system";
export { type HttpOptions, httpFileSystem } from "./stores/http";
export type { ProgressCallback } from "./stores/progress";
