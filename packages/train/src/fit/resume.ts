/** Checkpoints of a run: its state as one tree, and how a run goes on from it. */
import type { CheckpointContents, FileSystem, Loaded, PartialTensor, SavedTensor } from "@opt/checkpoint";
import { check, defaultGenerator, Generator, OptError, type OptimizerState, show, Tensor } from "@opt/core";
import { copiesIn } from "@opt/core/backend";
import { mapTree } from "../tree";
import type { Base, Sums } from "./base";
import type { Callback, EpochRecord, History } from "./events";
import { isDivided, type PlacedModel } from "./model";
import { type FitOptions, WHERE } from "./options";
import type { FitOptimizer } from "./parts";
import type { Totals } from "./totals";

/** Where a run stands, in plain numbers. */
interface Position {
  epoch: number;
  /** Steps of the run, and of the epoch. */
  step: number;
  epochStep: number;
  skippedSteps: number;
  /** Batches of the epoch. */
  batches: number;
  /** Of the epoch, training alone. */
  seconds: number;
  /** All its batches were trained on; what follows them is still to come. */
  isEpochDone: boolean;
  /** A callback has ended the run. */
  stop: boolean;
}

/** Everything of a run that a checkpoint holds. */
export interface Resumable<Batch> extends Position {
  readonly placed: PlacedModel;
  readonly options: FitOptions<Batch>;
  readonly callbacks: readonly Callback[];
  readonly totals: Totals;
  readonly base: Base;
  readonly history: History;
  /** Where the data stood when the run was stopped. */
  readonly loader?: object | null | undefined;
}

/** What each rank has of its own. */
interface RankState {
  readonly generators: readonly object[];
  readonly loader: object | null;
  /** As text, for JSON has no NaN. */
  readonly sums: readonly string[];
  readonly samples: number;
}

/** Beside `optimizer` among the values of a checkpoint. Its tensors are among the checkpoint's, under dotted names. */
interface SavedRun {
  readonly position: Position;
  readonly epochs: readonly EpochRecord[];
  readonly losses: Tensor | null;
  readonly ranks: readonly RankState[];
  /** Checksums of what was left out. */
  readonly base?: Sums;
  readonly ema: Readonly<Record<string, unknown>> | null;
  readonly scaler: object | null;
  readonly schedule: object | null;
  /** By name, see `named`. */
  readonly callbacks: Readonly<Record<string, object>>;
}

const ROOT = "fit";

interface Stateful {
  stateDict(): object;
  loadStateDict(state: unknown): void;
}

const statefulOf = (data: unknown): Stateful | undefined => {
  const { stateDict, loadStateDict } = (data ?? {}) as Partial<Stateful>;
  return typeof stateDict === "function" && typeof loadStateDict === "function" ? (data as Stateful) : undefined;
};

/** Null for data without a state. */
export const loaderStateOf = (data: unknown): object | null => statefulOf(data)?.stateDict() ?? null;

/** What a checkpoint has of an optimizer: all of its state, or this rank's. */
async function contentsOfOptimizer(optimizer: FitOptimizer) {
  const sharded = optimizer as { contents?(): Promise<{ tensors: Record<string, SavedTensor>; values: object }> };
  if (sharded.contents) return { ...(await sharded.contents()), copies: [] };
  const { optimizerContents } = await import("@opt/checkpoint");
  const state = (await optimizer.stateDict()) as OptimizerState;
  return { ...optimizerContents(state), copies: copiesIn(state) };
}

/** @param base what is left out */
export async function contentsOf<Batch>(
  run: Resumable<Batch>,
  base: Sums,
): Promise<{ contents: CheckpointContents; copies: readonly Tensor[] }> {
  const { options, callbacks, totals, history } = run;
  const { weights, communicator } = run.placed;
  const { optimizer, ema, scaler, schedule, data, generators = [] } = options;
  const optimizing = await contentsOfOptimizer(optimizer);
  const mine: RankState = {
    generators: [defaultGenerator, ...generators].map((generator) => generator.stateDict()),
    loader: run.loader === undefined ? loaderStateOf(data) : run.loader,
    sums: totals.sums.map(String),
    samples: totals.samples,
  };
  const { epoch, step, epochStep, skippedSteps, batches, seconds, isEpochDone } = run;
  const saved = {
    position: {
      ...{ epoch, step, epochStep, skippedSteps, batches, seconds, isEpochDone },
      stop: Boolean(run.stop),
    } satisfies Position,
    epochs: history.epochs,
    losses: history.losses.length > 0 ? Float32Array.from(history.losses) : null,
    ranks: (communicator ? await communicator.gather(mine) : [mine]) ?? [],
    base,
    ema: ema?.stateDict() ?? null,
    scaler: scaler?.stateDict() ?? null,
    schedule: schedule?.stateDict() ?? null,
    callbacks: Object.fromEntries(Object.entries(named(callbacks)).map(([name, each]) => [name, each.stateDict!()])),
  };
  const byName = new Map(weights.namedTensors());
  const own = Object.fromEntries([...byName].filter(([name]) => !(name in base)));
  const tensors: Record<string, SavedTensor> = { ...own, ...optimizing.tensors };
  const isFirst = (run.placed.placing?.communicator.rank ?? 0) === 0;
  // As JSON: tensors leave null in their places. By their role they are not the model's, as a converted checkpoint tells them apart.
  const tree = mapTree(
    saved,
    (leaf, path, keys) => {
      if (typeof leaf === "number" && !Number.isFinite(leaf)) return String(leaf);
      const isList = leaf instanceof Float32Array;
      if (!isList && !(leaf instanceof Tensor)) return leaf;
      const tensor = isList ? recorded(leaf, isFirst) : { tensor: leaf };
      const follows = isList ? undefined : followedName(keys, leaf, byName);
      tensors[path] = { ...tensor, role: "state", ...(follows !== undefined && { follows }) };
      return null;
    },
    ROOT,
  );
  const contents = { step, tensors, values: { ...optimizing.values, ...(isFirst && { fit: tree as never }) } };
  return { contents, copies: optimizing.copies };
}

/**
 * The weight whose average, copy or state a tensor is, which ranks divide as it is: that of its shape, whose name is among the keys that
 * lead to it, the innermost first. Averages have it behind a prefix.
 */
function followedName(
  keys: readonly string[],
  { shape }: Tensor,
  weights: ReadonlyMap<string, Tensor>,
): string | undefined {
  const names = keys.toReversed().flatMap((key) => {
    const words = key.split(".");
    return words.map((_, i) => words.slice(i).join("."));
  });
  return names.find((name) => String(weights.get(name)?.shape) === String(shape));
}

/** A list in the record of the run, which the first rank writes. */
function recorded(list: Float32Array, isFirst: boolean): PartialTensor {
  const all = { offset: [0], size: [list.length], data: list };
  return { dtype: "F32", shape: [list.length], boxes: isFirst ? [all] : [] };
}

/** Takes over what `contentsOf` gave. Returns the batches of the epoch that are to be skipped, where the data cannot go on by themselves. */
async function loadRun<Batch>(run: Resumable<Batch>, loaded: Loaded<Tensor>): Promise<number> {
  const { options, callbacks, totals, history } = run;
  const { weights, communicator } = run.placed;
  const { optimizer, ema, scaler, schedule, data, generators = [] } = options;
  const { tensors, values } = loaded;
  const byName = new Map(weights.namedTensors());
  const placed = (path: string, keys: readonly string[]) => {
    const tensor = tensors[path];
    if (tensor === undefined) return null;
    tensor.placement = byName.get(followedName(keys, tensor, byName) ?? "")?.placement ?? null;
    return tensor;
  };
  const put = (leaf: unknown, path: string, keys: readonly string[]) =>
    leaf === null
      ? placed(path, keys)
      : ["NaN", "Infinity", "-Infinity"].includes(leaf as string)
        ? Number(leaf)
        : leaf;
  const saved = mapTree(values.fit, put, ROOT) as SavedRun | undefined;
  check(
    saved?.position,
    "BAD_STATE",
    WHERE,
    () => "the checkpoint must be one of fit, got another one.",
    "Load its weights with model.loadStateDict, and leave out resume.",
  );
  const { optimizerState } = await import("@opt/checkpoint");
  const { base = {} } = saved;
  await run.base.check(base);
  const names = [...byName.keys()].filter((name) => !(name in base));
  const lacking = names.find((name) => tensors[name] === undefined);
  check(lacking === undefined, "BAD_STATE", WHERE, () => `the checkpoint must have ${lacking}.`);
  const strict = names.length === byName.size;
  weights.loadStateDict(Object.fromEntries(names.map((name) => [name, tensors[name]!])), { strict });
  const state = optimizerState(loaded);
  const { copies, values: made } = await contentsOfOptimizer(optimizer);
  for (const copy of copies) copy.dispose();
  const present = made as { optimizer: Pick<OptimizerState, "groups"> };
  const known = { ...optimizer.groups[0], ...present.optimizer.groups[0] }; // wrappers list counters, too
  const foreign = Object.keys(state.groups[0] ?? {}).find((option) => !(option in known));
  check(
    foreign === undefined,
    "BAD_STATE",
    WHERE,
    () => `the optimizer must be of the class that was saved, got one without ${foreign}.`,
    "Make the same optimizer.",
  );
  optimizer.loadStateDict(state);
  if (ema) ema.loadStateDict(saved.ema ?? {});
  if (scaler && saved.scaler) scaler.loadStateDict(saved.scaler);
  if (schedule && saved.schedule) schedule.loadStateDict(saved.schedule);
  loadCallbacks(named(callbacks), saved.callbacks);
  Object.assign(run, saved.position);
  history.epochs.push(...saved.epochs);
  history.losses.push(...((await saved.losses?.data()) ?? []));
  const { rank = 0, size = 1 } = communicator ?? {};
  const isSameSize = size === saved.ranks.length;
  const own = saved.ranks[rank % saved.ranks.length]!;
  [defaultGenerator, ...generators].forEach((generator, i) => {
    const states = saved.ranks.map((each) => each.generators[i]!);
    generator.loadStateDict(drawnFor(rank, states));
  });
  loadTotals(totals, saved.ranks, rank, isSameSize);
  const loader = statefulOf(data);
  if (own.loader && loader) loader.loadStateDict(own.loader);
  else if (!isSameSize && run.batches > 0 && !run.isEpochDone) {
    const problem = `data must have a state to go on inside an epoch on ${size} ranks, saved on ${saved.ranks.length}.`;
    throw new OptError("BAD_STATE", WHERE, problem, "Pass a DataLoader, or save where an epoch ends.");
  }
  return loader ? 0 : run.batches;
}

/** A rank's own state of a generator. One that was not there has what all had, or else draws of its own. */
function drawnFor(rank: number, states: readonly object[]): object {
  const own = states[rank % states.length]!;
  const areAlike = states.every((state) => JSON.stringify(state) === JSON.stringify(own));
  if (rank < states.length || areAlike) return own;
  const parent = new Generator(0);
  parent.loadStateDict(own);
  return new Generator(parent.nextUint32() + rank * 2 ** 32).stateDict();
}

/** Sums of ranks add up: where there are others than before, the first one has those of all. */
function loadTotals(totals: Totals, ranks: readonly RankState[], rank: number, isSameSize: boolean): void {
  if (isSameSize) {
    totals.load(ranks[rank]!.sums.map(Number), ranks[rank]!.samples);
    return;
  }
  totals.reset();
  if (rank > 0) return;
  const sums = totals.sums.map((_, i) => ranks.reduce((sum, own) => sum + Number(own.sums[i]), 0));
  totals.load(
    sums,
    ranks.reduce((sum, own) => sum + own.samples, 0),
  );
}

/** Callbacks that have a state, by name: the second one of a name has -2 behind it. Their places in the list may change. */
function named(callbacks: readonly Callback[]): Record<string, Callback> {
  const byName: Record<string, Callback> = {};
  for (const callback of callbacks) {
    if (callback.stateDict === undefined) continue;
    const name = callback.name ?? callback.constructor.name;
    let key = name;
    for (let number = 2; key in byName; number++) key = `${name}-${number}`;
    byName[key] = callback;
  }
  return byName;
}

function loadCallbacks(callbacks: Record<string, Callback>, states: SavedRun["callbacks"]): void {
  const warn = (problem: string) => console.warn(`[${WHERE}] ${problem}`);
  for (const [name, callback] of Object.entries(callbacks))
    if (name in states) callback.loadStateDict?.(states[name]!);
    else warn(`the checkpoint must have the state of ${name}, got none. It begins anew.`);
  for (const name of Object.keys(states).filter((each) => !(each in callbacks)))
    warn(`the state of ${name} in the checkpoint needs its callback, got none. Add it to callbacks.`);
}

/** Returns the batches to skip, see `loadRun`. @throws OptError MISSING if `resume` names a folder without a checkpoint; BAD_STATE for that of another run */
export async function resumeRun<Batch>(run: Resumable<Batch>): Promise<number> {
  const { resume = false } = run.options;
  if (resume === false) return 0;
  const place = run.callbacks.find(({ saves }) => saves !== undefined)?.saves;
  const problem = () => "resume: true needs the callback checkpoints(folder), got none.";
  check(resume !== true || place, "BAD_ARGUMENT", WHERE, problem, 'Or name the folder: resume: "runs/a".');
  const { loadCheckpoint } = await import("@opt/checkpoint");
  const { placed } = run;
  const parts =
    placed.placing && isDivided(placed)
      ? { layout: placed.placing.layout, rank: placed.placing.communicator.rank }
      : {};
  const loaded = await (resume === true
    ? ifThere(loadCheckpoint(place!.folder, { ...elsewhere(place!.fileSystem), ...parts }))
    : loadCheckpoint(resume, parts));
  if (loaded === undefined) return 0;
  try {
    return await loadRun(run, loaded);
  } catch (error) {
    if (!(error instanceof OptError && error.code === "BAD_STATE")) throw error;
    const from = show(resume === true ? place!.folder : resume);
    const problem = `resume must name a checkpoint of this run, got one of ${from} that does not fit: ${error.message}`;
    const cure = "Or train anew: leave out resume, and save elsewhere.";
    throw new OptError("BAD_STATE", WHERE, problem, cure, { cause: error });
  } finally {
    for (const tensor of Object.values(loaded.tensors)) tensor.dispose();
  }
}

/** The option, where it is given. */
export const elsewhere = (fileSystem: FileSystem | undefined) => (fileSystem === undefined ? {} : { fileSystem });

/** Undefined where nothing is there. */
export const ifThere = <Value>(value: Promise<Value>): Promise<Value | undefined> =>
  value.catch((error: { code?: string }) => {
    if (error.code !== "MISSING") throw error;
    return undefined;
  });
