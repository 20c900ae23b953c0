/** Saving: every rank writes the boxes it is responsible for, then one of them makes the step exist. */
import { resolve } from "node:path";
import { OptError } from "@opt/core";
import { crc32 } from "../format/crc32";
import { bytesPerElement } from "../format/dtype";
import { checkedValues } from "../format/json";
import { assembleManifest, type RankRecord, type RecordedTensor } from "../format/record";
import { shardName } from "../format/shard";
import type { Json } from "../format/source";
import { type LocalTensor, localTensors, type SavedTensor } from "../format/tensors";
import { type Box, elementsIn, sameBox, wholeOf } from "../layout/box";
import { boxesOfRank, defaultLayout, type Layout, ranksOf, wholeShape } from "../layout/layout";
import { copyRegion, runsOf } from "../plan/runs";
import { type FileSystem, nodeFileSystem } from "../stores/file-system";
import { allOf } from "../stores/lanes";
import { type ProgressCallback, reporter } from "../stores/progress";
import { Scratch } from "../stores/scratch";
import { type AgreedTensors, agreeOnShapes, describeTensor, type TensorDescription, unseenTensors } from "./agreement";
import { type Communicator, singleProcess } from "./communicator";
import { type Outcome, outcomeOf, unwrap } from "./outcome";
import { meetInFolder } from "./rendezvous";
import { type ShardJob, writeShard } from "./shard-job";
import { writeShardInThread } from "./shard-thread";
import { newAttempt, StepFolder } from "./step-folder";
import { type Assignment, assignWriters, fileOrder, type ShardableTensor } from "./writers";

export interface CheckpointContents {
  readonly step: number;
  readonly tensors: Readonly<Record<string, SavedTensor>> | Iterable<readonly [string, SavedTensor]>;
  /** Plain JSON: options, schedules, epoch, random generators. Rank 0's are kept. */
  readonly values?: { readonly [key: string]: unknown };
}

export type Progress = (done: { readonly bytes: number; readonly total: number }) => void;

export interface SaveOptions {
  /** This process's rank, of `world`. Without it (and without a communicator) this process is every rank and holds whole tensors. */
  readonly rank?: number;
  readonly world?: number;
  /** What the ranks hold; without it every tensor is split along its first dimension. */
  readonly layout?: Layout;
  /** Lets ranks agree. Without one they must share this process, or the name of an `attempt`; the last to finish commits. */
  readonly communicator?: Communicator;
  readonly attempt?: string;
  /** Tensors are whole on every rank, which writes its slices of them only. */
  readonly whole?: boolean;
  /** Tensors are copied before anything else happens, and written by another thread. */
  readonly async?: boolean;
  /** Refuse replicated tensors that differ between ranks. */
  readonly checkReplicas?: boolean;
  /** Replace the step if it exists. */
  readonly overwrite?: boolean;
  /** How many of the newest steps to keep; all without it. */
  readonly keep?: number;
  /** Also record each file's SHA-256. */
  readonly sha256?: boolean;
  readonly progress?: ProgressCallback;
  readonly fileSystem?: FileSystem;
}

export interface SaveResult {
  /** The folder of the step. */
  readonly path: string;
  readonly step: number;
  /** False where other ranks, which share no communicator, have yet to finish. */
  readonly committed: boolean;
  /** What could not be tidied up: old steps, leftovers. */
  readonly warnings: readonly string[];
}

/**
 * Saves a step of a run: `<folder>/step-<step>/`. It exists whole or not at all, whatever dies on the way.
 * Throws BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, BAD_STATE, DUPLICATE, MISSING, IO; older steps are untouched.
 *
 * @example
 * await saveCheckpoint("runs/a", { step: 100, tensors: model.stateDict(), values: { epoch: 2 } });
 */
export async function saveCheckpoint(
  folder: string,
  contents: CheckpointContents,
  options: SaveOptions = {},
): Promise<SaveResult> {
  const save = new Save(folder, contents, options);
  const snapshot = options.async ? save.snapshot() : undefined;
  return oneAtATime(`${resolve(folder)}#${save.rank ?? "all"}`, async () => save.run(await snapshot));
}

/** Saves in flight, by folder and rank. Shared by every copy of this package in the process. */
function inFlight(): Map<string, Promise<unknown>> {
  const shared = globalThis as { [key: symbol]: Map<string, Promise<unknown>> | undefined };
  const key = Symbol.for("@opt/checkpoint.saves");
  shared[key] ??= new Map();
  return shared[key];
}

async function oneAtATime<T>(key: string, body: () => Promise<T>): Promise<T> {
  const saves = inFlight();
  const before = saves.get(key);
  const mine = before ? before.then(body, body) : body();
  saves.set(key, mine);
  try {
    return await mine;
  } finally {
    if (saves.get(key) === mine) saves.delete(key);
  }
}

/** Ranks of one process that share no communicator meet under this name. */
function processAttempt(): string {
  const shared = globalThis as { [key: symbol]: string | undefined };
  const key = Symbol.for("@opt/checkpoint.attempt");
  shared[key] ??= newAttempt();
  return shared[key];
}

/** A box that this process writes, or only holds. */
interface Piece {
  readonly tensor: LocalTensor;
  readonly box: Box;
  /** Valid until `scratch` is used again; without one, for good. */
  readonly bytes: (scratch?: Scratch) => Uint8Array | Promise<Uint8Array>;
}

/** Files that one process writes at once. */
const LANES = 4;

type Snapshot = ReadonlyMap<string, readonly Uint8Array[]>;

class Save {
  readonly rank: number | undefined;
  readonly #folder: string;
  readonly #step: number;
  readonly #tensors: readonly LocalTensor[];
  readonly #byName: ReadonlyMap<string, LocalTensor>;
  readonly #values: { [key: string]: Json };
  readonly #world: number;
  readonly #layout: Layout;
  readonly #options: SaveOptions;
  readonly #fileSystem: FileSystem;

  constructor(folder: string, contents: CheckpointContents, options: SaveOptions) {
    const refuse = (problem: string, advice: string): never => {
      throw new OptError("BAD_ARGUMENT", "saveCheckpoint", problem, advice);
    };
    const { step } = contents;
    if (!Number.isSafeInteger(step) || step < 0)
      refuse(`step must be a whole number from 0, got ${step}.`, "Count from 0.");
    const { communicator, layout, keep } = options;
    const meshSize = layout && ranksOf(layout);
    const world = communicator?.size ?? options.world ?? meshSize ?? 1;
    if (!Number.isSafeInteger(world) || world < 1)
      refuse(`world must be a positive whole number, got ${world}.`, "Fix it.");
    if (meshSize !== undefined && meshSize !== world)
      refuse(`the layout's mesh has ${meshSize} ranks, the run ${world}.`, "Fix it.");
    const rank = communicator?.rank ?? options.rank;
    if (rank !== undefined && !(Number.isSafeInteger(rank) && rank >= 0 && rank < world)) {
      refuse(`rank must be in [0, ${world}), got ${rank}.`, "Give world too.");
    }
    if (keep !== undefined && !(Number.isSafeInteger(keep) && keep >= 1))
      refuse(`keep must be at least 1, got ${keep}.`, "Fix it.");
    this.rank = rank;
    this.#folder = folder;
    this.#step = step;
    this.#tensors = localTensors(contents.tensors);
    this.#byName = new Map(this.#tensors.map((tensor) => [tensor.name, tensor]));
    this.#values = checkedValues(contents.values ?? {});
    this.#world = world;
    this.#layout = layout ?? defaultLayout(world);
    this.#options = options;
    this.#fileSystem = options.fileSystem ?? nodeFileSystem;
  }

  /** Starts reading every tensor at once, before the caller can change any. */
  snapshot(): Promise<Snapshot> {
    const copies = this.#tensors.map(async (tensor): Promise<[string, Uint8Array[]]> => {
      const count = tensor.boxes?.length ?? 1;
      const reading = Array.from({ length: count }, (_, box) => tensor.bytes(box));
      const copied = reading.map((bytes) => (bytes instanceof Promise ? bytes.then(sharedCopy) : sharedCopy(bytes)));
      return [tensor.name, await Promise.all(copied)];
    });
    return Promise.all(copies).then((entries) => new Map(entries));
  }

  async run(snapshot: Snapshot | undefined): Promise<SaveResult> {
    if (this.rank === undefined) return this.#saveAllRanks(snapshot);
    if (this.#options.communicator) return this.#saveTogether(this.#options.communicator, snapshot);
    if (this.#world === 1) return this.#saveTogether(singleProcess(), snapshot);
    return this.#saveApart(this.rank, snapshot);
  }

  /** This process holds everything and writes every rank's file. */
  async #saveAllRanks(snapshot: Snapshot | undefined): Promise<SaveResult> {
    const folder = await this.#begin(newAttempt());
    try {
      const assignments = this.#assign(this.#tensors);
      const report = this.#reporter(assignments);
      const byRank: Piece[][] = Array.from({ length: this.#world }, () => []);
      for (const one of assignments) byRank[one.writer]!.push(this.#piece(one, snapshot));
      const records: RankRecord[] = [];
      const queue = [...byRank.entries()];
      const lane = async () => {
        for (let next = queue.shift(); next; next = queue.shift()) {
          const [rank, written] = next;
          const described = rank === 0 ? this.#tensors : [];
          records[rank] = await this.#writeRank(folder, rank, described, written, [], snapshot !== undefined, report);
        }
      };
      await allOf(Array.from({ length: LANES }, lane));
      return await this.#commit(folder, records, this.#values);
    } catch (error) {
      await folder.abandon();
      throw error;
    }
  }

  /** Ranks that can talk: shapes are agreed on first, and everybody learns how it ended. */
  async #saveTogether(communicator: Communicator, snapshot: Snapshot | undefined): Promise<SaveResult> {
    const described = await communicator.gather(this.#tensors.map(describeTensor));
    const agreed = unwrap(await communicator.broadcast(described && (await outcomeOf(() => this.#agree(described)))));
    const folder = StepFolder.join(this.#fileSystem, this.#folder, this.#step, agreed.attempt);
    const outcome = await outcomeOf(() => {
      const tensors = this.#tensors.map((tensor) => ({ ...tensor, ...agreed.tensors[tensor.name]! }));
      return this.#writeOwn(folder, communicator.rank, tensors, unseenTensors(agreed.tensors, tensors), snapshot);
    });
    const outcomes = await communicator.gather(outcome);
    return unwrap(await communicator.broadcast(outcomes && (await outcomeOf(() => this.#conclude(folder, outcomes)))));
  }

  async #agree(
    described: readonly (readonly TensorDescription[])[],
  ): Promise<{ attempt: string; tensors: AgreedTensors }> {
    const tensors = agreeOnShapes(this.#layout, described, this.#options.whole ?? false);
    const attempt = this.#options.attempt ?? newAttempt();
    await this.#begin(attempt);
    return { attempt, tensors };
  }

  async #conclude(folder: StepFolder, outcomes: readonly Outcome<RankRecord>[]): Promise<SaveResult> {
    try {
      return await this.#commit(folder, outcomes.map(unwrap), this.#values);
    } catch (error) {
      await folder.abandon();
      throw error;
    }
  }

  /** Ranks that cannot talk leave their reports in the folder; the last one commits. */
  async #saveApart(rank: number, snapshot: Snapshot | undefined): Promise<SaveResult> {
    const folder = await this.#begin(this.#options.attempt ?? processAttempt());
    try {
      const tensors = this.#tensors.map((tensor) => ({ ...tensor, shape: this.#evenShape(tensor) }));
      const record = await this.#writeOwn(folder, rank, tensors, [], snapshot);
      const report = { ...record, values: this.#values };
      const committed = await meetInFolder(this.#fileSystem, folder.path, this.#world, report, (reports) =>
        this.#commit(folder, reports, reports[0]!.values),
      );
      return committed ?? { path: folder.finalPath, step: this.#step, committed: false, warnings: [] };
    } catch (error) {
      await folder.abandon();
      throw error;
    }
  }

  /** Without asking the others: the parts must be equal, or the layout must tell the whole shape. */
  #evenShape(tensor: LocalTensor): readonly number[] {
    if (tensor.boxes || this.#options.whole) return tensor.shape;
    return wholeShape(this.#layout, { ...tensor, rank: tensor.shape.length }, () => tensor.shape);
  }

  #begin(attempt: string): Promise<StepFolder> {
    return StepFolder.begin(this.#fileSystem, this.#folder, this.#step, attempt, {
      overwrite: this.#options.overwrite ?? false,
    });
  }

  /** Who writes which box of these tensors; explicit boxes are written by whoever has them. */
  #assign(tensors: readonly ShardableTensor[]): Assignment[] {
    const explicit = new Map(this.#tensors.flatMap(({ name, boxes }) => (boxes ? [[name, boxes]] : [])));
    const laidOut = assignWriters(
      this.#layout,
      tensors.filter(({ name }) => !explicit.has(name)),
    );
    const self = this.rank ?? 0;
    for (const tensor of tensors) {
      for (const box of explicit.get(tensor.name) ?? []) {
        if (elementsIn(box) > 0) laidOut.push({ tensor, box, writer: self, ranks: [self] });
      }
    }
    return laidOut;
  }

  async #writeOwn(
    folder: StepFolder,
    rank: number,
    tensors: readonly ShardableTensor[],
    unseen: readonly ShardableTensor[],
    snapshot: Snapshot | undefined,
  ): Promise<RankRecord> {
    const own = new Set(tensors.map(({ name }) => name));
    const mine = this.#assign([...tensors, ...unseen]).filter(
      ({ tensor, ranks }) => own.has(tensor.name) && ranks.includes(rank),
    );
    for (const tensor of tensors) this.#checkSlice(tensor, rank);
    const written = mine.filter(({ writer }) => writer === rank).map((one) => this.#piece(one, snapshot));
    const held = mine.filter(({ writer }) => writer !== rank).map((one) => this.#piece(one, snapshot));
    const report = this.#reporter(written);
    const described = tensors.map(({ name, shape }) => ({ ...this.#local(name), shape }));
    return this.#writeRank(folder, rank, described, written, held, snapshot !== undefined, report);
  }

  /** What a rank hands over must be what the layout says it holds. */
  #checkSlice(tensor: ShardableTensor, rank: number): void {
    const { boxes, shape: local } = this.#local(tensor.name);
    if (boxes || this.#options.whole) return;
    const [box, ...more] = boxesOfRank(this.#layout, tensor, rank);
    const fitsBox = box && more.length === 0 && box.size.every((length, d) => length === local[d]);
    if (fitsBox || (!box && local.includes(0))) return;
    const wanted = box && more.length === 0 ? `[${box.size}]` : `${more.length + (box ? 1 : 0)} boxes`;
    const problem = `rank ${rank} must hold ${wanted} of [${tensor.shape}], got [${local}].`;
    throw new OptError("BAD_SHAPE", `tensor ${JSON.stringify(tensor.name)}`, problem, "Fix the slice or the layout.");
  }

  #local(name: string): LocalTensor {
    return this.#byName.get(name)!;
  }

  /** The bytes of a box, cut out of what this process holds at the moment they are wanted. */
  #piece({ tensor: { name, shape }, box }: Assignment, snapshot: Snapshot | undefined): Piece {
    const local = this.#local(name);
    const tensor = { ...local, shape };
    const index = local.boxes?.findIndex((one) => sameBox(one, box)) ?? 0;
    const all = () => snapshot?.get(name)?.[index] ?? local.bytes(index);
    const isWhole = this.rank === undefined || this.#options.whole;
    if (local.boxes || !isWhole || sameBox(box, wholeOf(shape))) return { tensor, box, bytes: all };
    const width = bytesPerElement(local.dtype);
    return { tensor, box, bytes: async (scratch) => cutOut(await all(), wholeOf(shape), box, width, scratch) };
  }

  async #writeRank(
    folder: StepFolder,
    rank: number,
    described: readonly LocalTensor[],
    written: Piece[],
    held: readonly Piece[],
    inWorker: boolean,
    report: (bytes: number) => void,
  ): Promise<RankRecord> {
    written.sort(fileOrder);
    const recorded = new Map<
      string,
      RecordedTensor & { written: RecordedTensor["written"][number][]; held: RecordedTensor["held"][number][] }
    >();
    const recordOf = ({ name, dtype, shape, role, follows }: LocalTensor) => {
      if (!recorded.has(name))
        recorded.set(name, {
          name,
          dtype,
          shape,
          role,
          ...(follows === undefined ? {} : { follows }),
          written: [],
          held: [],
        });
      return recorded.get(name)!;
    };
    // Also what is written elsewhere is reported, so that ranks that disagree about a tensor are found out.
    for (const tensor of described) recordOf(tensor);
    const largest = [...written, ...held].reduce(
      (most, { tensor, box }) => Math.max(most, elementsIn(box) * bytesPerElement(tensor.dtype)),
      0,
    );
    const scratch = new Scratch(largest);
    let file: RankRecord["file"];
    if (written.length > 0) {
      const boxes = written.map(({ tensor, box }) => ({ tensor: tensor.name, dtype: tensor.dtype, box }));
      const job: ShardJob = {
        folder: folder.path,
        name: shardName(rank),
        boxes,
        sha256: this.#options.sha256 ?? false,
      };
      const result =
        inWorker && this.#fileSystem === nodeFileSystem
          ? await writeShardInThread(job, await Promise.all(written.map(({ bytes }) => bytes())), report)
          : await writeShard(job, (box) => written[box]!.bytes(scratch), this.#fileSystem, report);
      file = result.file;
      written.forEach(({ tensor, box }, i) => {
        recordOf(tensor).written.push({ offset: box.offset, size: box.size, ...result.boxes[i]! });
      });
    }
    if (this.#options.checkReplicas) {
      for (const { tensor, box, bytes } of held)
        recordOf(tensor).held.push({ ...box, crc32: crc32(await bytes(scratch)) });
    }
    return { rank, ...(file ? { file } : {}), tensors: [...recorded.values()] };
  }

  #reporter(pieces: readonly { tensor: ShardableTensor; box: Box }[]): (bytes: number) => void {
    const total = pieces.reduce((sum, { tensor, box }) => sum + elementsIn(box) * bytesPerElement(tensor.dtype), 0);
    return reporter(this.#options.progress, total);
  }

  async #commit(
    folder: StepFolder,
    records: readonly RankRecord[],
    values: { [key: string]: Json },
  ): Promise<SaveResult> {
    const { checkReplicas = false, overwrite = false, keep } = this.#options;
    const manifest = assembleManifest(
      records,
      { step: this.#step, mesh: this.#layout.mesh, values },
      { checkReplicas },
    );
    const warnings = await folder.commit(manifest, { overwrite, ...(keep === undefined ? {} : { keep }) });
    return { path: folder.finalPath, step: this.#step, committed: true, warnings };
  }
}

/** In memory that the writing thread sees too. */
function sharedCopy(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

/** A box out of a larger one, copied only where it does not lie there in one piece. */
function cutOut(bytes: Uint8Array, whole: Box, box: Box, elementBytes: number, scratch?: Scratch): Uint8Array {
  const length = elementsIn(box) * elementBytes;
  const first = runsOf(whole, box, box, elementBytes).next().value;
  if (first?.length === length) return bytes.subarray(first.from, first.from + length);
  const cut = scratch?.take(length) ?? new Uint8Array(length);
  copyRegion(whole, bytes, box, cut, box, elementBytes);
  return cut;
}
