/** Re-slicing: a checkpoint for another number of ranks or another layout, without ever holding a whole tensor. */
import { checkOptions, OptError } from "@opt/core";
import { Verification } from "../format/checked";
import { bytesPerElement } from "../format/dtype";
import type { ManifestTensor } from "../format/manifest";
import { completeManifest } from "../format/record";
import { type FileRecord, ShardWriter, shardName, type WrittenBox } from "../format/shard";
import { type SourceTensor, type TensorSource, withoutBoxes } from "../format/source";
import { followedName } from "../format/tensors";
import { type Box, elementsIn, wholeOf } from "../layout/box";
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
import { besides, DEFAULT_MAX_MEMORY, streamTensors, writerBuffer } from "./stream";

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
  const byRank = filesOf(assignWriters(layout, tensors), ranks);
  const fileSystem = options.outFileSystem ?? options.fileSystem ?? localFileSystem;
  const overwrite = options.overwrite ?? false;
  const step = source.step ?? 0;
  const folder = await StepFolder.begin(fileSystem, destination, step, newAttempt(), { overwrite });
  try {
    const written = await writeFiles(folder, tensors, byRank, fileSystem, options);
    const whole = { step, attempt: folder.attempt, mesh: layout.mesh, values: source.values, world: ranks };
    await folder.commit(completeManifest({ ...whole, ...written }), { overwrite });
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
  return {
    ...withoutBoxes(tensor),
    role,
    ...(follows === undefined ? {} : { follows }),
    get boxes() {
      return tensor.boxes;
    },
  };
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
): Promise<{ files: readonly FileRecord[]; tensors: readonly ManifestTensor[] }> {
  const pool = new FilePool(fileSystem, "update");
  const lengths = byRank.map((boxes) =>
    boxes.reduce((sum, { tensor, box }) => sum + elementsIn(box) * bytesPerElement(tensor.dtype), 0),
  );
  const groups = writtenTogether(lengths, fileSystem, options.maxMemory);
  const held = (ranks: readonly number[]) => fileSystem.unfinished?.memory(ranks.map((rank) => lengths[rank]!)) ?? 0;
  const maxMemory = besides(Math.max(0, ...groups.map(held)), options.maxMemory);
  const bufferBytes = writerBuffer(maxMemory, Math.max(1, ...groups.map((ranks) => ranks.length)));
  const writers = byRank.map((boxes, rank) => {
    const held = boxes.map(({ tensor, box }) => ({ tensor: tensor.name, dtype: tensor.dtype, box }));
    return boxes.length === 0
      ? undefined
      : new ShardWriter(folder, shardName(rank, fileTag), held, { fileSystem, pool, bufferBytes, isStable: true });
  });
  try {
    const placed = new Map<string, Place[]>(tensors.map(({ name }) => [name, []]));
    byRank.forEach((boxes, rank) => {
      for (const [index, { tensor, box }] of boxes.entries()) placed.get(tensor.name)!.push({ box, rank, index });
    });
    const total = tensors.reduce((sum, tensor) => sum + bytesIn(tensor), 0);
    const sorted = [...tensors].sort((a, b) => fileOrder(asPiece(a), asPiece(b)));
    const progress = reporter(options.progress, total);
    const files: FileRecord[] = [];
    const written: { readonly file: number; readonly boxes: readonly WrittenBox[] }[] = [];
    for (const group of groups) {
      for (const rank of group) await writers[rank]?.create();
      const ranks = new Set(group);
      const streamed = sorted.map((tensor) => ({
        tensor,
        // Made when it is their turn, and dropped after it.
        get targets() {
          const places = placed.get(tensor.name)!.filter(({ rank }) => ranks.has(rank));
          return places.map(({ box, rank, index }) => ({
            box,
            write: (bytes: Uint8Array) => writers[rank]!.write(index, bytes),
          }));
        },
      }));
      await streamTensors(streamed, { progress, maxMemory });
      for (const rank of group) {
        const finished = await writers[rank]?.finish({ sha256: options.sha256 ?? false });
        if (finished) written[rank] = { file: files.push(finished.file) - 1, boxes: finished.boxes };
      }
    }
    await pool.close();
    const whole = tensors.map((tensor) => ({
      ...describe(tensor),
      boxes: placed.get(tensor.name)!.map(({ box: { offset, size }, rank, index }) => {
        const { file, boxes } = written[rank]!;
        return { offset, size, file, ...boxes[index]! };
      }),
    }));
    return { files, tensors: whole };
  } catch (error) {
    for (const writer of writers) await writer?.settle();
    await pool.close().catch(() => {}); // the first error is the one that tells
    throw error;
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

/** The box of a tensor that a rank's file has at a place. */
interface Place {
  readonly box: Box;
  readonly rank: number;
  readonly index: number;
}

function bytesIn({ dtype, shape }: RoledTensor): number {
  return elementsIn(wholeOf(shape)) * bytesPerElement(dtype);
}

function asPiece(tensor: SourceTensor) {
  return { tensor, box: { offset: [], size: [] } };
}

function describe({ name, dtype, shape, role, follows }: RoledTensor) {
  return { name, dtype, shape, role, ...(follows === undefined ? {} : { follows }) };
}
