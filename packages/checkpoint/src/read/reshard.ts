/** Re-slicing: a checkpoint for another number of ranks or another layout, without ever holding a whole tensor. */
import { checkOptions, OptError } from "@opt/core";
import { Verification } from "../format/checked";
import { assembleManifest, type RankRecord, type RecordedTensor } from "../format/record";
import { ShardWriter, shardName } from "../format/shard";
import type { SourceTensor, TensorSource } from "../format/source";
import { followedName } from "../format/tensors";
import { defaultLayout, type Layout, ranksOf } from "../layout/layout";
import { localFileSystem } from "../platform/local";
import { newAttempt } from "../save/owner";
import { StepFolder } from "../save/step-folder";
import { type Assignment, assignWriters, fileOrder } from "../save/writers";
import { FilePool } from "../stores/file-pool";
import { checkedPath, diskError, type FileSystem } from "../stores/file-system";
import { type ProgressCallback, reporter } from "../stores/progress";
import { OPEN_OPTIONS, type OpenOptions, useSource } from "./open";
import { SELECTION_OPTIONS, type Selection, selectTensors } from "./select";
import { type StreamTarget, streamTensors } from "./stream";

export interface ReshardOptions extends Selection, OpenOptions {
  /** How many ranks will load it; may be left out where a layout says. */
  readonly ranks?: number;
  /** Without it every tensor is split along its first dimension. */
  readonly layout?: Layout;
  /** Most bytes of buffers, 64 MiB without it. */
  readonly maxMemory?: number;
  readonly overwrite?: boolean;
  readonly sha256?: boolean;
  readonly progress?: ProgressCallback;
}

export interface ReshardResult {
  /** The folder of the step. */
  readonly path: string;
  readonly step: number;
  readonly ranks: number;
  readonly unverified: readonly string[];
}

/**
 * Writes the step of `source` (a checkpoint of ours or of any known system) sliced anew under `destination`; optimizer state follows its
 * parameter. Throws MISSING, CORRUPT, BAD_ARGUMENT, BAD_SHAPE, DUPLICATE, IO: then there is no new step.
 */
export async function reshardCheckpoint(
  path: string,
  destination: string,
  options: ReshardOptions,
): Promise<ReshardResult> {
  checkedPath("reshardCheckpoint", path);
  checkedPath("reshardCheckpoint", destination);
  checkOptions("reshardCheckpoint", options, {
    ...OPEN_OPTIONS,
    ...SELECTION_OPTIONS,
    ranks: "number",
    layout: "object",
    maxMemory: "number",
    overwrite: "boolean",
    sha256: "boolean",
    progress: "function",
  });
  return useSource(path, options, (source) => reshardSource(source, destination, options));
}

export async function reshardSource(
  source: TensorSource,
  destination: string,
  options: ReshardOptions,
): Promise<ReshardResult> {
  const layout = options.layout ?? defaultLayout(checkedRanks(options.ranks));
  const ranks = ranksOf(layout);
  if (options.ranks !== undefined && options.ranks !== ranks) {
    throw new OptError(
      "BAD_ARGUMENT",
      "reshardCheckpoint",
      `the layout's mesh has ${ranks} ranks, ranks says ${options.ranks}.`,
      "Drop one.",
    );
  }
  const verification = new Verification();
  const tensors = selectTensors(source, options, verification).map((tensor) => withRole(tensor, source));
  const byRank = filesOf(assignWriters(layout, tensors), ranks);
  const fileSystem = options.fileSystem ?? localFileSystem;
  const overwrite = options.overwrite ?? false;
  const step = source.step ?? 0;
  const folder = await StepFolder.begin(fileSystem, destination, step, newAttempt(), { overwrite });
  try {
    const records = await writeFiles(folder, tensors, byRank, fileSystem, options);
    const whole = { step, attempt: folder.attempt, mesh: layout.mesh, values: source.values };
    await folder.commit(assembleManifest(records, whole, { checkReplicas: false }), { overwrite });
  } catch (error) {
    await folder.abandon();
    throw diskError(error, folder.finalPath, "re-slicing");
  }
  const unverified = options.verify === false ? tensors.map(({ name }) => name) : verification.unverified();
  return { path: folder.finalPath, step, ranks, unverified };
}

function checkedRanks(ranks: number | undefined): number {
  if (ranks !== undefined && Number.isSafeInteger(ranks) && ranks >= 1) return ranks;
  throw new OptError(
    "BAD_ARGUMENT",
    "reshardCheckpoint",
    `ranks must be a positive whole number, got ${ranks}.`,
    "Or give a layout.",
  );
}

type RoledTensor = SourceTensor & { role: NonNullable<SourceTensor["role"]> };

/** Other systems do not say which tensor is whose state; its name does. */
function withRole(tensor: SourceTensor, source: TensorSource): RoledTensor {
  const follows = tensor.follows ?? (tensor.role ? undefined : followedName(tensor.name, source.tensors));
  const role = tensor.role ?? (follows !== undefined ? "state" : tensor.shape.length === 0 ? "scalar" : "param");
  return { ...tensor, role, ...(follows === undefined ? {} : { follows }) };
}

function filesOf(assignments: readonly Assignment<RoledTensor>[], ranks: number): Assignment<RoledTensor>[][] {
  const byRank: Assignment<RoledTensor>[][] = Array.from({ length: ranks }, () => []);
  for (const assignment of assignments) byRank[assignment.writer]!.push(assignment);
  for (const boxes of byRank) boxes.sort(fileOrder);
  return byRank;
}

async function writeFiles(
  { path: folder, fileTag }: StepFolder,
  tensors: readonly RoledTensor[],
  byRank: readonly (readonly Assignment<RoledTensor>[])[],
  fileSystem: FileSystem,
  options: ReshardOptions,
): Promise<RankRecord[]> {
  const pool = new FilePool(fileSystem, "update");
  try {
    const writers = byRank.map((boxes, rank) => {
      const held = boxes.map(({ tensor, box }) => ({ tensor: tensor.name, dtype: tensor.dtype, box }));
      return boxes.length === 0
        ? undefined
        : new ShardWriter(folder, shardName(rank, fileTag), held, { fileSystem, pool });
    });
    for (const writer of writers) await writer?.create();
    const targets = new Map<string, StreamTarget[]>(tensors.map(({ name }) => [name, []]));
    byRank.forEach((boxes, rank) => {
      const writer = writers[rank];
      boxes.forEach(({ tensor, box }, i) => {
        targets.get(tensor.name)!.push({ box, write: (bytes) => writer!.write(i, bytes) });
      });
    });
    const total = tensors.reduce(
      (sum, tensor) => sum + tensor.boxes.reduce((bytes, box) => bytes + box.byteLength, 0),
      0,
    );
    const { maxMemory } = options;
    await streamTensors(
      [...tensors]
        .sort((a, b) => fileOrder(asPiece(a), asPiece(b)))
        .map((tensor) => ({ tensor, targets: targets.get(tensor.name)! })),
      { progress: reporter(options.progress, total), ...(maxMemory === undefined ? {} : { maxMemory }) },
    );
    const records: RankRecord[] = [];
    for (const [rank, writer] of writers.entries()) {
      const finished = await writer?.finish({ sha256: options.sha256 ?? false });
      const recorded = new Map<string, RecordedTensor & { written: RecordedTensor["written"][number][] }>();
      if (rank === 0)
        for (const tensor of tensors) recorded.set(tensor.name, { ...describe(tensor), written: [], held: [] });
      byRank[rank]!.forEach(({ tensor, box }, i) => {
        if (!recorded.has(tensor.name)) recorded.set(tensor.name, { ...describe(tensor), written: [], held: [] });
        recorded.get(tensor.name)!.written.push({ ...box, ...finished!.boxes[i]! });
      });
      records.push({ rank, ...(finished ? { file: finished.file } : {}), tensors: [...recorded.values()] });
    }
    await pool.close();
    return records;
  } catch (error) {
    await pool.close().catch(() => {}); // the first error is the one that tells
    throw error;
  }
}

function asPiece(tensor: SourceTensor) {
  return { tensor, box: { offset: [], size: [] } };
}

function describe({ name, dtype, shape, role, follows }: RoledTensor) {
  return { name, dtype, shape, role, ...(follows === undefined ? {} : { follows }) };
}
