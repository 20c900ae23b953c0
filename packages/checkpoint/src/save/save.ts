/** Saving: every rank writes the boxes it is responsible for, then one of them makes the step exist. */
import { check, checkOptions } from "@opt/core";
import { crc32, crcText } from "../format/crc32";
import { checkedValues } from "../format/json";
import type { Manifest } from "../format/manifest";
import { assembleManifest, type RankRecord } from "../format/record";
import type { Json } from "../format/source";
import { type LocalTensor, localTensors, type SavedTensor } from "../format/tensors";
import { defaultLayout, type Layout, ranksOf } from "../layout/layout";
import { fileSystemOf } from "../platform/local";
import { checkedPath, type FileSystem } from "../stores/file-system";
import { allOf } from "../stores/lanes";
import { type ProgressCallback, reporter } from "../stores/progress";
import { oneAtATime } from "./queue";
import type { AgreedTensors, Hello } from "./ranks/agreement";
import type { Communicator } from "./ranks/communicator";
import { type Outcome, outcomeOf, unwrap } from "./ranks/outcome";
import { bytesOfAll, Holdings } from "./shards/pieces";
import { type RankFile, writeRankFile } from "./shards/rank-file";
import type { Assignment, ShardableTensor } from "./shards/writers";
import type { Retention } from "./step/keep";
import { type Attempt, newAttempt } from "./step/owner";
import { StepFolder } from "./step/step-folder";

export interface CheckpointContents {
  readonly step: number;
  readonly tensors: Readonly<Record<string, SavedTensor>> | Iterable<readonly [string, SavedTensor]>;
  /** Plain JSON: options, schedules, epoch, random generators. Rank 0's are kept. */
  readonly values?: { readonly [key: string]: unknown };
}

export interface SaveOptions {
  /** Lets this rank save together with the others; `async` saves use its `aside`. Without it this process holds whole tensors. */
  readonly communicator?: Communicator;
  /** How many ranks the files are for; the mesh or the communicator tells it too. */
  readonly world?: number;
  /** What the ranks hold; without it every tensor is split along its first dimension. */
  readonly layout?: Layout;
  /** Tensors are whole on every rank, which writes its slices of them only. */
  readonly whole?: boolean;
  /** Tensors are copied before anything else happens, and written by another thread. */
  readonly async?: boolean;
  /** Refuse replicated tensors that differ between ranks. */
  readonly checkReplicas?: boolean;
  /** Replace the step if it exists. */
  readonly overwrite?: boolean;
  /** How many of the newest steps stay, or which; all without it. Others go once this step exists. */
  readonly keep?: number | Retention;
  /** Also record each file's SHA-256. */
  readonly sha256?: boolean;
  readonly progress?: ProgressCallback;
  readonly fileSystem?: FileSystem;
}

export interface SaveResult {
  /** The folder of the step. */
  readonly path: string;
  readonly step: number;
  /** What PyTorch's reader cannot take, and what could not be tidied up: old steps, leftovers. */
  readonly warnings: readonly string[];
}

/** Resolves when the step exists, on every rank. */
export interface Saving extends Promise<SaveResult> {
  /** Resolves when the tensors may be changed: with `async` once they are copied, else at the end. Rejects as the save does. */
  readonly copied: Promise<void>;
}

const WHERE = "saveCheckpoint";

/** Files that one process writes at once. */
const LANES = 4;

/**
 * Saves a step of a run: `<folder>/step-<step>/`. It exists whole or not at all, whatever dies on the way.
 * Throws BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, BAD_STATE, CHANGED (a tensor, while it was saved), DUPLICATE, MISSING, IO, on every rank;
 * older steps are untouched.
 *
 * @example
 * await saveCheckpoint("runs/a", { step: 100, tensors: model.stateDict(), values: { epoch: 2 } });
 */
export function saveCheckpoint(folder: string, contents: CheckpointContents, options: SaveOptions = {}): Saving {
  const begin = async () => {
    const save = new Save(folder, contents, options);
    const copying = options.async ? save.holdings.snapshot() : undefined;
    copying?.catch(() => {}); // thrown below, when its turn has come
    const saved = oneAtATime(save.queues, async () => {
      try {
        await copying;
        return await save.run();
      } finally {
        save.holdings.release();
      }
    });
    return { saved, copied: copying ?? saved.then(() => {}) };
  };
  const begun = begin();
  const copied = begun.then((started) => started.copied);
  copied.catch(() => {}); // whoever does not wait for it learns from the save
  return Object.assign(
    begun.then(({ saved }) => saved),
    { copied },
  );
}

class Save {
  readonly rank: number | undefined;
  readonly holdings: Holdings;
  readonly #folder: string;
  readonly #step: number;
  readonly #values: { [key: string]: Json };
  readonly #world: number;
  readonly #layout: Layout;
  readonly #options: SaveOptions;
  #keep: Retention | undefined;
  readonly #fileSystem: FileSystem;

  constructor(folder: string, contents: CheckpointContents, options: SaveOptions) {
    checkedPath(WHERE, folder);
    checkOptions(WHERE, contents, { step: "number", tensors: "any", values: "any" });
    check(
      !("rank" in options),
      "BAD_ARGUMENT",
      WHERE,
      () => "ranks save through a communicator.",
      "Give communicator.",
    );
    checkOptions(WHERE, options, {
      world: "number",
      layout: "object",
      communicator: "any",
      whole: "boolean",
      async: "boolean",
      checkReplicas: "boolean",
      overwrite: "boolean",
      keep: ["number", "object"],
      sha256: "boolean",
      progress: "function",
      fileSystem: "any",
    });
    const { step } = contents;
    const { communicator, layout, world: given } = options;
    const refuseUnless = (condition: boolean, problem: () => string, advice: string) =>
      check(condition, "BAD_ARGUMENT", WHERE, problem, advice);
    const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
    refuseUnless(isCount(step), () => `step must be a whole number from 0, got ${step}.`, "Count from 0.");
    refuseUnless(
      !communicator || (isCount(communicator.rank) && isCount(communicator.size)),
      () => "communicator has no rank and size.",
      "Fix it.",
    );
    const { size = given } = communicator ?? {};
    refuseUnless(
      !communicator || given === undefined || given === size,
      () => `world is ${given}, the communicator says ${size}.`,
      "Drop it.",
    );
    const meshSize = layout && ranksOf(layout);
    const world = size ?? meshSize ?? 1;
    refuseUnless(isCount(world) && world > 0, () => `world must be a positive whole number, got ${world}.`, "Fix it.");
    refuseUnless(
      meshSize === undefined || meshSize === world,
      () => `the layout's mesh has ${meshSize} ranks, the run ${world}.`,
      "Fix it.",
    );
    const rank = communicator?.rank;
    refuseUnless(rank === undefined || rank < world, () => `rank must be below ${world}, got ${rank}.`, "Fix it.");
    this.rank = rank;
    this.#step = step;
    this.#values = checkedValues(contents.values ?? {});
    this.#world = world;
    this.#layout = layout ?? defaultLayout(world);
    this.holdings = new Holdings(localTensors(contents.tensors), this.#layout, rank, options.whole ?? false);
    const aside = options.async && communicator?.aside?.();
    this.#options = aside ? { ...options, communicator: aside } : options;
    this.#fileSystem = fileSystemOf(options.fileSystem);
    // Now: when its turn comes, the process may stand elsewhere.
    this.#folder = this.#fileSystem.resolve(folder);
  }

  /** Saves of one rank into one folder wait for each other, and those of one communicator: what they say must not mix. */
  get queues(): unknown[] {
    return [`${this.#folder}#${this.rank ?? "all"}`, this.#options.communicator ?? this];
  }

  run(): Promise<SaveResult> {
    const { communicator } = this.#options;
    return communicator ? this.#saveTogether(communicator) : this.#saveAllRanks();
  }

  /** What every rank must say alike. */
  #terms(): string {
    const { whole = false, checkReplicas = false } = this.#options;
    const layout = crcText(crc32(new TextEncoder().encode(JSON.stringify(this.#layout))));
    return `step ${this.#step}, world ${this.#world}, layout ${layout}, whole ${whole}, checkReplicas ${checkReplicas}`;
  }

  /** This process holds everything and writes every rank's file. */
  async #saveAllRanks(): Promise<SaveResult> {
    const folder = await this.#begin(newAttempt());
    try {
      const { tensors } = this.holdings;
      const assignments = this.holdings.assign(tensors);
      const report = reporter(this.#options.progress, bytesOfAll(assignments));
      const byRank: Assignment<LocalTensor>[][] = Array.from({ length: this.#world }, () => []);
      for (const one of assignments) byRank[one.writer]!.push(one);
      const records: RankRecord[] = [];
      const queue = byRank.entries(); // of all lanes
      const lane = async () => {
        for (const [rank, written] of queue) {
          const file = { folder, rank, described: rank === 0 ? tensors : [], written, held: [] };
          records[rank] = await this.#write(file, report);
        }
      };
      await allOf(Array.from({ length: LANES }, lane));
      this.holdings.checkUnchanged();
      return await this.#commit(folder, records);
    } catch (error) {
      await folder.abandon();
      throw error;
    }
  }

  /** What exists is agreed on first; then each rank writes, and everybody learns how it ended. */
  async #saveTogether(communicator: Communicator): Promise<SaveResult> {
    const { tensors } = this.holdings;
    const { describeTensor } = await import("./ranks/agreement");
    const hellos = await communicator.gather<Hello>({ terms: this.#terms(), tensors: tensors.map(describeTensor) });
    const agreed = unwrap(
      await communicator.broadcast(hellos && (await outcomeOf(() => this.#agree(hellos, newAttempt())))),
    );
    const folder = new StepFolder(this.#fileSystem, this.#folder, this.#step, agreed.attempt, agreed);
    try {
      const outcome = await outcomeOf(() => this.#writeOwn(folder, communicator.rank, agreed.tensors));
      const outcomes = await communicator.gather(outcome);
      return unwrap(await communicator.broadcast(outcomes && (await this.#conclude(folder, outcomes))));
    } catch (error) {
      // Whoever was to tell may have died between the commit and telling.
      if (await folder.isCommitted().catch(() => false)) return this.#result(folder, []);
      if (communicator.rank === 0) await folder.abandon();
      throw error;
    }
  }

  async #agree(
    hellos: readonly Hello[],
    attempt: Attempt,
  ): Promise<{ attempt: Attempt; overwrite: boolean; tensors: AgreedTensors }> {
    const { agree } = await import("./ranks/agreement");
    const tensors = agree(this.#layout, hellos, this.#options.whole ?? false);
    await this.#begin(attempt);
    return { attempt, overwrite: this.#options.overwrite ?? false, tensors };
  }

  #conclude(folder: StepFolder, outcomes: readonly Outcome<RankRecord>[]): Promise<Outcome<SaveResult>> {
    return outcomeOf(() => this.#commit(folder, outcomes.map(unwrap)));
  }

  async #begin(attempt: Attempt): Promise<StepFolder> {
    const { keep, overwrite = false } = this.#options;
    if (keep !== undefined) this.#keep = (await import("./step/keep")).checkedRetention(WHERE, keep, this.#values);
    return StepFolder.begin(this.#fileSystem, this.#folder, this.#step, attempt, { overwrite });
  }

  async #writeOwn(folder: StepFolder, rank: number, agreed: AgreedTensors): Promise<RankRecord> {
    const { unseenTensors } = await import("./ranks/agreement");
    // With the shape of the whole; the dtype is this rank's own, so that a difference is found out.
    const tensors = this.holdings.tensors.map((tensor) => ({
      ...tensor,
      ...agreed[tensor.name]!,
      dtype: tensor.dtype,
    }));
    for (const tensor of tensors) this.holdings.checkSlice(tensor, rank);
    const mine = this.holdings
      .assign<ShardableTensor>([...tensors, ...unseenTensors(agreed, tensors)])
      .filter((one): one is Assignment<LocalTensor> => "bytes" in one.tensor && one.ranks.includes(rank));
    const written = mine.filter(({ writer }) => writer === rank);
    const held = mine.filter(({ writer }) => writer !== rank);
    const report = reporter(this.#options.progress, bytesOfAll(written));
    const record = await this.#write({ folder, rank, described: tensors, written, held }, report);
    this.holdings.checkUnchanged();
    return { ...record, written: [...record.written] }; // as a message
  }

  #write(file: RankFile, report: (bytes: number) => void): Promise<RankRecord> {
    const { sha256 = false, checkReplicas = false } = this.#options;
    return writeRankFile(this.holdings, file, { fileSystem: this.#fileSystem, sha256, checkReplicas, report });
  }

  async #commit(folder: StepFolder, records: readonly RankRecord[]): Promise<SaveResult> {
    const { checkReplicas = false, overwrite = false } = this.#options;
    const whole = { step: this.#step, attempt: folder.attempt, mesh: this.#layout.mesh, values: this.#values };
    const compare = checkReplicas ? (await import("../format/replicas")).compareReplicas : undefined;
    const manifest = assembleManifest(records, whole, compare);
    const untidied = await folder.commit(manifest, { overwrite, keep: this.#keep });
    return this.#result(folder, [...whatTorchRefuses(manifest), ...untidied]);
  }

  #result(folder: StepFolder, warnings: readonly string[]): SaveResult {
    return { path: folder.finalPath, step: this.#step, warnings };
  }
}

/** Several boxes of one tensor in one file: ours to read, but not its reader's, which takes one. */
function whatTorchRefuses({ tensors }: Manifest): string[] {
  const several = tensors.find(({ boxes }) => new Set(boxes.map(({ file }) => file)).size < boxes.length);
  if (!several) return [];
  const what = `tensor ${JSON.stringify(several.name)} has several boxes in one file`;
  return [`${what}: PyTorch's HuggingFaceStorageReader refuses that. Merge it into one file.`];
}
