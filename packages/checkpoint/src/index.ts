/** `@opt/checkpoint`: sharded checkpoints that are saved, loaded, merged, re-sliced, verified, compared and converted. */

export type { Difference, DiffOptions, DiffResult } from "./compare/diff";
export type { ConvertOptions, ConvertResult, ConvertTarget } from "./convert/convert";
export type { SaveWeightsOptions } from "./convert/weights";
export type { Explanation, Finding } from "./explain/explain";
export type { StoredDType } from "./format/dtype";
export { type OptimizerContents, optimizerContents, optimizerState } from "./format/optimizer-state";
export type { BoxFinder, Json, Role, Skipped, SourceBox, SourceTensor, TensorSource } from "./format/source";
export type { Best } from "./format/steps";
export type { AnnotatedTensor, PartialTensor, PlainTensor, SavedTensor } from "./format/tensors";
export type { Rename } from "./formats/names/rename";
export type { Box } from "./layout/box";
export { defaultLayout, type Layout, type Mesh, type Split, type TensorLayout, type UnevenRule } from "./layout/layout";
export { compareLedgers, type LedgerDifference, type LedgerLine, type LedgerValue } from "./ledger/compare";
export type { Ledger, LedgerOptions } from "./ledger/ledger";
export type { RecordedRun } from "./ledger/record";
export {
  checkpointBlob,
  cleanCheckpoints,
  convertCheckpoint,
  diffCheckpoints,
  explainCheckpoint,
  inspectCheckpoint,
  ledger,
  loadCheckpoint,
  mergeCheckpoint,
  openFolder,
  openSource,
  pruneCheckpoints,
  recordedRun,
  reshardCheckpoint,
  saveWeights,
  verifyCheckpoint,
} from "./operations";
export { localFileSystem } from "./platform/local";
export type { InspectedTensor, Inspection } from "./read/inspect";
export type { Loaded, LoadOptions } from "./read/load";
export type { OpenFolderOptions, OpenOptions, Place } from "./read/open";
export type { LoadedPlainTensor } from "./read/places";
export type { Selection, Slice } from "./read/select";
export type { Problem, VerifyOptions, VerifyResult } from "./read/verify";
export type { MergeOptions, MergeResult } from "./rewrite/merge";
export type { ReshardOptions, ReshardResult } from "./rewrite/reshard";
export {
  type Communicator,
  communicatorOver,
  type Exchange,
  localCommunicators,
  singleProcess,
} from "./save/ranks/communicator";
export { type CheckpointContents, type SaveOptions, type SaveResult, type Saving, saveCheckpoint } from "./save/save";
export type { CleanOptions, CleanResult } from "./save/step/clean";
export type { Leftover } from "./save/step/leftovers";
export type { PruneOptions, PruneResult } from "./save/step/prune";
export type { Retention } from "./save/step/retention";
export { blobFileSystem, type NamedBlob } from "./stores/blob";
export type {
  Checksum,
  FileSystem,
  FolderEntry,
  OpenFile,
  OpenMode,
  StoredFile,
  UnfinishedFiles,
} from "./stores/file-system";
export { type HttpOptions, httpFileSystem } from "./stores/http";
export { type MemoryFileSystem, memoryFileSystem } from "./stores/memory";
export { type ObjectStat, type ObjectStore, type ObjectWriter, objectFileSystem, type Upload } from "./stores/objects";
export { opfsFileSystem, type PickedFolder } from "./stores/opfs";
export type { ProgressCallback } from "./stores/progress";
