/** Saving: every rank writes the boxes it is responsible for, then one of them makes the step exist. */
import { check, checkOptions } from "@opt/core";
import { crc32, crcText } from "../format/crc32";
import type { Json } from "../format/source";
import { localTensors, type SavedTensor } from "../format/tensors";
import { checkedStep, isCount } from "../layout/counts";
import { defaultLayout, type Layout, ranksOf } from "../layout/layout";
import { outputOf } from "../platform/local";
import { checkedPath, type FileSystem } from "../stores/file-system";
import type { ProgressCallback } from "../stores/progress";
import { oneAtATime } from "./queue";
import type { RankProposal } from "./ranks/agreement";
import { type Communicator, singleProcess } from "./ranks/communicator";
import { failureOf, type Outcome, outcomeOf, unwrap } from "./ranks/outcome";
import { checkedGiven, type GivenValues } from "./ranks/values";
import type { RankReport, RecordedTensor } from "./shards/assemble";
import { Holdings } from "./shards/holdings";
import type { SavePlan } from "./shards/plan";
import { checkedRetention, type Retention } from "./step/retention";
import type { StepFolder } from "./step/step-folder";

/** Loaded when a save has begun. */
type Begun = typeof import("./begun");

export interface CheckpointContents {
  readonly step: number;
  readonly tensors: Readonly<Record<string, SavedTensor>> | Iterable<readonly [string, SavedTensor]>;
  /** Plain JSON of the run: options, schedules, epoch. Rank 0 writes it; others give the same or nothing. */
  readonly values?: { readonly [key: string]: unknown };
  /** Plain JSON that each rank has of its own, as its random generators. Loaded as the list `values.rankValues`, in the order of ranks. */
  readonly rankValues?: { readonly [key: string]: unknown };
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
  /** Reject replicated tensors that differ between ranks. */
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
  /** What could not be tidied up: old steps, leftovers. */
  readonly warnings: readonly string[];
}

/** Resolves when the step exists, on every rank. */
export interface Saving extends Promise<SaveResult> {
  /** Resolves when the tensors may be changed: with `async` once they are copied, else at the end. Rejects as the save does. */
  readonly copied: Promise<void>;
}

const WHERE = "saveCheckpoint";

/**
 * Saves a step of a run: `<folder>/step-<step>/`. It exists whole or not at all, whatever dies on the way.
 *
 * @throws OptError BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, BAD_STATE (as for `values` that differ between ranks), CHANGED (a tensor, while it was saved), DUPLICATE, MISSING, IO, on
 * every rank; older steps are untouched
 * @example
 * await saveCheckpoint("runs/a", { step: 100, tensors: model.stateDict(), values: { epoch: 2 } });
 */
export function saveCheckpoint(folder: string, contents: CheckpointContents, options: SaveOptions = {}): Saving {
  const begin = async () => {
    let save: Save;
    try {
      save = new Save(folder, contents, options);
    } catch (error) {
      return reject(options, error);
    }
    const copying = options.async ? save.holdings.snapshot() : undefined;
    copying?.catch(() => {}); // told to all ranks, when its turn has come
    const saved = oneAtATime(save.queues, () => save.run(copying).finally(() => save.holdings.release()));
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

/** Throws this rank's error once it has told the other ranks, which would wait for it. */
async function reject(options: SaveOptions, error: unknown): Promise<never> {
  const communicator = speaking(options);
  if (isCommunicator(communicator)) {
    await oneAtATime([communicator], async () => {
      const said = await communicator.gather<Outcome<RankProposal>>(failureOf(error));
      await communicator.broadcast(said && failureOf(error));
    });
  }
  throw error;
}

/** Over which ranks speak of this save. */
function speaking({ async, communicator }: SaveOptions): Communicator | undefined {
  return (async && communicator?.aside?.()) || communicator;
}

function isCommunicator(given: Communicator | undefined): given is Communicator {
  const { rank, size, barrier, gather, broadcast } = (given ?? {}) as Partial<Communicator>;
  return isCount(rank) && isCount(size) && [barrier, gather, broadcast].every((one) => typeof one === "function");
}

interface SaveAgreement {
  readonly attempt: string;
  readonly overwrite: boolean;
  readonly tensors: readonly RecordedTensor[];
}

/** A step is a folder: names of files would become folders of that name. @throws OptError BAD_ARGUMENT */
function checkFolder(folder: string): void {
  check(
    !/\.(safetensors|pt|pth|npz|bin|h5|keras|gguf)\/?$/i.test(folder),
    "BAD_ARGUMENT",
    WHERE,
    () => `the path must be that of a run's folder, got ${folder}.`,
    "For one file of weights, call saveWeights(path, tensors).",
  );
}

class Save {
  readonly holdings: Holdings;
  readonly #folder: string;
  readonly #step: number;
  readonly #given: GivenValues;
  /** On rank 0, once ranks have agreed. */
  #values: { [key: string]: Json } = {};
  readonly #layout: Layout;
  readonly #isWhole: boolean;
  readonly #options: SaveOptions;
  readonly #fileSystem: FileSystem;
  #begun: StepFolder | undefined;

  constructor(folder: string, contents: CheckpointContents, options: SaveOptions) {
    checkedPath(WHERE, folder);
    checkFolder(folder);
    checkOptions(WHERE, contents, { step: "number", tensors: "any", values: "any", rankValues: "any" });
    this.#layout = checkedLayout(options);
    this.#step = checkedStep(WHERE, contents.step);
    this.#given = checkedGiven(contents);
    const { communicator, whole = false } = options;
    this.#isWhole = whole || !communicator;
    this.holdings = new Holdings(localTensors(contents.tensors), this.#isWhole);
    const spoken = speaking(options);
    this.#options = spoken ? { ...options, communicator: spoken } : options;
    this.#fileSystem = outputOf(folder, options.fileSystem);
    // Now: when its turn comes, the process may stand elsewhere.
    this.#folder = this.#fileSystem.resolve(folder);
  }

  /** Saves of one rank into one folder wait for each other, and those of one communicator: what they say must not mix. */
  get queues(): unknown[] {
    const { communicator } = this.#options;
    return [`${this.#folder}#${communicator?.rank ?? "all"}`, communicator ?? this];
  }

  /** Ranks agree, all write, rank 0 commits, and all learn how it ended. */
  async run(ready: Promise<void> | undefined): Promise<SaveResult> {
    const { communicator = singleProcess() } = this.#options;
    let mayWrite = communicator.size > 1;
    try {
      const code = await import("./begun");
      const agreed = await this.#agree(code, communicator, ready);
      const step =
        this.#begun ?? new code.StepFolder(this.#fileSystem, this.#folder, this.#step, agreed.attempt, agreed);
      const plan = code.planSave(this.#layout, agreed.tensors);
      const written = await outcomeOf(() => this.#write(code, step, agreed.tensors, plan));
      const conclude = async () => {
        const all = await communicator.gather(written);
        mayWrite = false;
        const commit = () => this.#commit(code, step, plan, all!.flatMap(unwrap));
        return communicator.broadcast(all && (await outcomeOf(commit)));
      };
      const concluded = conclude().catch(async (error): Promise<Outcome<SaveResult>> => {
        // Whoever was to tell may have died between the commit and telling.
        if (await step.confirm()) return { value: this.#result(step, []) };
        throw error;
      });
      return unwrap(await concluded);
    } catch (error) {
      await this.#begun?.abandon(mayWrite);
      throw error;
    }
  }

  /** Rank 0 hears what all ranks hold, begins the step, and tells how. */
  async #agree(code: Begun, communicator: Communicator, ready: Promise<void> | undefined): Promise<SaveAgreement> {
    const said = await communicator.gather(await outcomeOf(() => this.#say(code, ready)));
    const begin = async () => {
      const { keep, overwrite = false } = this.#options;
      const proposals = said!.map(unwrap);
      const tensors = code.agree(this.#layout, proposals, this.#isWhole);
      this.#values = code.agreedValues(
        this.#given,
        proposals.map(({ values }) => values),
      );
      const retention = keep === undefined ? undefined : checkedRetention(WHERE, keep, this.#values);
      const options = { overwrite, keep: retention };
      this.#begun = await code.StepFolder.begin(this.#fileSystem, this.#folder, this.#step, code.newAttempt(), options);
      return { attempt: this.#begun.attempt, overwrite, tensors };
    };
    return unwrap(await communicator.broadcast(said && (await outcomeOf(begin))));
  }

  async #say(code: Begun, ready: Promise<void> | undefined): Promise<RankProposal> {
    await ready;
    const { whole = false, checkReplicas = false } = this.#options;
    const layout = crcText(crc32(new TextEncoder().encode(JSON.stringify(this.#layout))));
    const world = ranksOf(this.#layout);
    const terms = `step ${this.#step}, world ${world}, layout ${layout}, whole ${whole}, checkReplicas ${checkReplicas}`;
    const values = code.sayValues(this.#given);
    return { terms, tensors: this.holdings.tensors.map(code.describeTensor), values };
  }

  #write(code: Begun, step: StepFolder, tensors: readonly RecordedTensor[], plan: SavePlan): Promise<RankReport[]> {
    const { communicator, sha256 = false, checkReplicas = false, progress } = this.#options;
    if (!this.#isWhole) code.checkSlices(this.#layout, tensors, this.holdings.tensors, communicator!.rank);
    const ranks = communicator ? [communicator.rank] : Array.from({ length: plan.ranks }, (_, rank) => rank);
    const { path: folder, fileTag } = step;
    const fileSystem = this.#fileSystem;
    return code.executeSave(this.holdings, plan, {
      ranks,
      fileSystem,
      folder,
      fileTag,
      sha256,
      checkReplicas,
      progress,
    });
  }

  async #commit(code: Begun, step: StepFolder, plan: SavePlan<RecordedTensor>, reports: readonly RankReport[]) {
    if (this.#options.checkReplicas) code.compareReplicas(plan, reports);
    if (this.#options.layout === undefined && !this.#isWhole) code.checkNotCopies(plan, reports);
    const whole = { step: this.#step, attempt: step.attempt, mesh: this.#layout.mesh, values: this.#values };
    const manifest = code.assembleManifest(plan, reports, whole);
    const untidied = await step.commit(manifest);
    return this.#result(step, untidied);
  }

  #result(step: StepFolder, warnings: readonly string[]): SaveResult {
    return { path: step.finalPath, step: this.#step, warnings };
  }
}

/** The layout of all ranks. @throws OptError BAD_ARGUMENT for options that do not fit together */
function checkedLayout(options: SaveOptions): Layout {
  const rejectUnless = (condition: boolean, problem: () => string, advice = "Fix it.") =>
    check(condition, "BAD_ARGUMENT", WHERE, problem, advice);
  rejectUnless(!("rank" in options), () => "ranks save through a communicator.", "Give communicator.");
  checkOptions(WHERE, options, {
    communicator: "any",
    world: "number",
    layout: "object",
    whole: "boolean",
    async: "boolean",
    checkReplicas: "boolean",
    overwrite: "boolean",
    keep: ["number", "object"],
    sha256: "boolean",
    progress: "function",
    fileSystem: "any",
  });
  const { communicator, layout, world } = options;
  if (communicator) {
    const { rank, size } = communicator;
    const lacking = () => "communicator must have rank, size, barrier, gather and broadcast.";
    rejectUnless(isCommunicator(communicator), lacking, "See communicatorOver.");
    rejectUnless(rank < size, () => `rank must be below ${size}, got ${rank}.`);
    rejectUnless((world ?? size) === size, () => `world is ${world}, the communicator says ${size}.`, "Drop it.");
  }
  const meshSize = layout && ranksOf(layout);
  const ranks = communicator?.size ?? world ?? meshSize ?? 1;
  rejectUnless(isCount(ranks) && ranks > 0, () => `world must be a positive whole number, got ${ranks}.`);
  rejectUnless((meshSize ?? ranks) === ranks, () => `the layout's mesh has ${meshSize} ranks, the run ${ranks}.`);
  return layout ?? defaultLayout(ranks);
}
