/** Re-slicing: a checkpoint for another number of ranks or another layout, without ever holding a whole tensor. */
import { checkOptions, OptError } from "@opt/core";
import { byteLengthOf, shardName } from "../format/shard";
import { redescribed, type SourceTensor, type TensorSource } from "../format/source";
import { followedName } from "../format/tensors";
import { Verification } from "../format/verification";
import type { Box } from "../layout/box";
import { defaultLayout, type Layout, ranksOf } from "../layout/layout";
import { fileSystemOf } from "../platform/local";
import { assembleManifest, type RankReport } from "../save/shards/assemble";
import { type Assignment, planSave, type SavePlan, tensorOrder } from "../save/shards/plan";
import { ShardWriter } from "../save/shards/shard-writer";
import { newAttempt } from "../save/step/owner";
import { StepFolder } from "../save/step/step-folder";
import { FilePool } from "../stores/file-pool";
import { checkedPath, diskError, type FileSystem } from "../stores/file-system";
import { type ProgressCallback, reporter } from "../stores/progress";
import { OPEN_OPTIONS, type OpenOptions, useSource } from "./open";
import { SELECTION_OPTIONS, type Selection, selectTensors } from "./select";
import {
  besides,
  DEFAULT_MAX_MEMORY,
  StreamBuffers,
  type StreamedTensor,
  type StreamTarget,
  streamTensors,
  writerBuffer,
} from "./stream";

export interface ReshardOptions extends Selection, OpenOptions {
  /** How many ranks will load it; may be left out where a layout says. */
  readonly ranks?: number;
  /** Without it every tensor is split along its first dimension. */
  readonly layout?: Layout;
  /** Most bytes of buffers, 64 MiB without it. */
  readonly maxMemory?: number;
  /** Where the result goes, if not into `fileSystem`. */
  readonly outFileSystem?: FileSystem;
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
    outFileSystem: "any",
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
  const plan = planSave(layout, tensors);
  const fileSystem = fileSystemOf(options.outFileSystem ?? options.fileSystem);
  const overwrite = options.overwrite ?? false;
  const step = source.step ?? 0;
  const folder = await StepFolder.begin(fileSystem, destination, step, newAttempt(), { overwrite });
  try {
    const reports = await writeFiles(folder, tensors, plan, fileSystem, options);
    const whole = { step, attempt: folder.attempt, mesh: layout.mesh, values: source.values };
    await folder.commit(assembleManifest(tensors, plan, reports, whole));
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
  if (tensor.role !== undefined) return tensor as RoledTensor;
  const follows = tensor.follows ?? followedName(tensor.name, source.tensors);
  const role = follows !== undefined ? "state" : tensor.shape.length === 0 ? "scalar" : "param";
  return redescribed(tensor, { role, ...(follows === undefined ? {} : { follows }) }) as RoledTensor;
}

async function writeFiles(
  { path: folder, fileTag }: StepFolder,
  tensors: readonly RoledTensor[],
  plan: SavePlan<RoledTensor>,
  fileSystem: FileSystem,
  options: ReshardOptions,
): Promise<RankReport[]> {
  const pool = new FilePool(fileSystem, "update");
  const lengths = plan.map((boxes) => boxes.reduce((sum, one) => sum + byteLengthOf(one), 0));
  const groups = writtenTogether(lengths, fileSystem, options.maxMemory);
  const held = (ranks: readonly number[]) => fileSystem.unfinished?.memory(ranks.map((rank) => lengths[rank]!)) ?? 0;
  const maxMemory = besides(Math.max(0, ...groups.map(held)), options.maxMemory);
  const bufferBytes = writerBuffer(maxMemory, Math.max(1, ...groups.map((ranks) => ranks.length)));
  const store = { fileSystem, pool, bufferBytes, isStable: true };
  const files = plan.map((boxes, rank) => ({
    boxes,
    writer: boxes.length === 0 ? undefined : new ShardWriter(folder, shardName(rank, fileTag), boxes, store),
  }));
  try {
    const sorted = [...tensors].sort(tensorOrder);
    const progress = reporter(
      options.progress,
      lengths.reduce((sum, length) => sum + length, 0),
    );
    const reports = plan.map((): RankReport => ({ checksums: [], replicas: [] }));
    const buffers = new StreamBuffers(maxMemory);
    for (const group of groups) {
      for (const rank of group) await files[rank]!.writer?.create();
      const together = group.map((rank) => files[rank]!);
      await streamTensors(withTargets(sorted, together), { progress, buffers });
      for (const rank of group) {
        const shard = await files[rank]!.writer?.finish({ sha256: options.sha256 ?? false });
        if (shard) reports[rank] = { ...shard, replicas: [] };
      }
    }
    await pool.close();
    return reports;
  } catch (error) {
    for (const { writer } of files) await writer?.settle();
    await pool.close().catch(() => {}); // the first error is the one that tells
    throw error;
  }
}

interface WrittenFile {
  readonly boxes: readonly Assignment<RoledTensor>[];
  readonly writer: ShardWriter | undefined;
}

class BoxTarget implements StreamTarget {
  readonly #writer: ShardWriter;
  readonly #index: number;

  constructor(
    readonly box: Box,
    writer: ShardWriter,
    index: number,
  ) {
    this.#writer = writer;
    this.#index = index;
  }

  get isQueue(): boolean {
    return true;
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    return this.#writer.write(this.#index, bytes);
  }
}

/** What of each tensor goes where: tensors and the boxes of each file are in one order, so that one walk along all of them tells. */
function* withTargets(sorted: readonly RoledTensor[], files: readonly WrittenFile[]): Generator<StreamedTensor> {
  const next = files.map(() => 0);
  for (const tensor of sorted) {
    const targets = Array.of<StreamTarget>(); // as in the reader, no literals
    for (const [file, { boxes, writer }] of files.entries()) {
      for (; boxes[next[file]!]?.tensor === tensor; next[file]!++) {
        targets.push(new BoxTarget(boxes[next[file]!]!.box, writer!, next[file]!));
      }
    }
    yield { tensor, targets };
  }
}

/** Ranks whose files are written in one pass: all, or as many as half of the memory holds the parts of. */
function writtenTogether(
  lengths: readonly number[],
  { unfinished }: FileSystem,
  maxMemory = DEFAULT_MAX_MEMORY,
): number[][] {
  if (!unfinished) return [[...lengths.keys()]];
  const groups: number[][] = [[]];
  for (const rank of lengths.keys()) {
    const group = [...groups.at(-1)!, rank];
    const bytes = unfinished.memory(group.map((one) => lengths[one]!));
    if (group.length > 1 && bytes > maxMemory / 2) groups.push([rank]);
    else groups.at(-1)!.push(rank);
  }
  return groups;
}
