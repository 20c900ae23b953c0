/** The state of a run as one tree: what a checkpoint holds, and how a run goes on from it. */
import type { CheckpointContents, Communicator, Loaded, SavedTensor } from "@opt/checkpoint";
import { check, defaultGenerator, type OptimizerState, Tensor } from "@opt/core";
import type { Module } from "@opt/nn";
import type { Callback } from "./events";
import type { EpochRecord, History } from "./history";
import { type FitOptions, WHERE } from "./options";
import type { Totals, TotalsState } from "./totals";

/** Where a run stands, in plain numbers. */
export interface Position {
  epoch: number;
  /** Steps of the run, and of the epoch. */
  step: number;
  epochStep: number;
  /** Batches of the epoch. */
  batches: number;
  /** Of the epoch, training alone. */
  seconds: number;
  /** All its batches were trained on; what follows them is still to come. */
  isEpochDone: boolean;
  /** A callback has ended the run. */
  stop: boolean;
}

/** What each rank has of its own. */
interface RankState {
  readonly generators: readonly object[];
  readonly loader: object | null;
  readonly totals: TotalsState;
}

/** Beside `optimizer` among the values of a checkpoint. Its tensors are among the checkpoint's, under dotted names. */
interface SavedRun {
  readonly position: Position;
  readonly epochs: readonly EpochRecord[];
  readonly losses: Tensor | null;
  readonly ranks: readonly RankState[];
  readonly ema: Readonly<Record<string, unknown>> | null;
  readonly scaler: object | null;
  readonly schedule: object | null;
  /** By name, see `named`. */
  readonly callbacks: Readonly<Record<string, object>>;
}

const ROOT = "fit";

/** Everything of a run that has state. */
export interface RunParts<Batch> extends Position {
  readonly model: Module;
  readonly options: FitOptions<Batch>;
  readonly callbacks: readonly Callback[];
  readonly communicator: Communicator | undefined;
  readonly totals: Totals;
  readonly history: History;
  /** Where the data stood when the run was stopped. */
  readonly loader?: object | null | undefined;
}

interface Stateful {
  stateDict(): object;
  loadStateDict(state: unknown): void;
}

const statefulOf = (data: unknown): Stateful | undefined => {
  const hasState = typeof (data as Stateful)?.stateDict === "function";
  return hasState && typeof (data as Stateful).loadStateDict === "function" ? (data as Stateful) : undefined;
};

/** Null for data without a state. */
export const loaderStateOf = (data: unknown): object | null => statefulOf(data)?.stateDict() ?? null;

export async function contentsOf<Batch>(parts: RunParts<Batch>): Promise<CheckpointContents> {
  const { model, options, callbacks, communicator, totals, history } = parts;
  const { optimizerContents } = await import("@opt/checkpoint");
  const { optimizer, ema, scaler, schedule, data, generators = [] } = options;
  const sharded = optimizer as { contents?(): Promise<{ tensors: Record<string, SavedTensor>; values: object }> };
  const optimizing = sharded.contents
    ? await sharded.contents()
    : optimizerContents((await optimizer.stateDict()) as OptimizerState);
  const own: RankState = {
    generators: [defaultGenerator, ...generators].map((generator) => generator.stateDict()),
    loader: parts.loader === undefined ? loaderStateOf(data) : parts.loader,
    totals: totals.state(),
  };
  const tensors: Record<string, SavedTensor> = { ...model.stateDict(), ...optimizing.tensors };
  const { epoch, step, epochStep, batches, seconds, isEpochDone, stop } = parts;
  const run = {
    position: { epoch, step, epochStep, batches, seconds, isEpochDone, stop: Boolean(stop) } satisfies Position,
    epochs: history.epochs,
    losses: history.losses.length > 0 ? Float32Array.from(history.losses) : null,
    ranks: (communicator ? await communicator.gather(own) : [own]) ?? [],
    ema: ema?.stateDict() ?? null,
    scaler: scaler?.stateDict() ?? null,
    schedule: schedule?.stateDict() ?? null,
    callbacks: mapped(named(callbacks), (callback) => (callback as Callback).stateDict!()),
  };
  return { step, tensors, values: { ...optimizing.values, fit: cut(run, ROOT, tensors) as never } };
}

/** Takes over what `contentsOf` gave. Returns the batches of the epoch that are to be skipped, where the data cannot go on by themselves. */
export async function loadRun<Batch>(parts: RunParts<Batch>, loaded: Loaded<Tensor>): Promise<number> {
  const { model, options, callbacks, communicator, totals, history } = parts;
  const { optimizer, ema, scaler, schedule, data, generators = [] } = options;
  const { tensors, values } = loaded;
  const saved = join(values.fit, ROOT, tensors) as SavedRun | undefined;
  const problem = () => "the checkpoint must be one of fit, got another one.";
  const cure = "Load its weights with model.loadStateDict, and leave out resume.";
  check(saved?.position, "BAD_STATE", WHERE, problem, cure);
  const { optimizerState } = await import("@opt/checkpoint");
  model.loadStateDict(Object.fromEntries(Object.keys(model.stateDict()).map((name) => [name, tensors[name]])));
  const state = optimizerState(loaded);
  const foreign = Object.keys(state.groups[0] ?? {}).find((option) => !(option in optimizer.groups[0]!));
  const another = () => `the optimizer must be of the class that was saved, got one without ${foreign}.`;
  check(foreign === undefined, "BAD_STATE", WHERE, another, "Make the same optimizer.");
  optimizer.loadStateDict(state);
  if (ema) ema.loadStateDict(saved.ema ?? {});
  if (scaler && saved.scaler) scaler.loadStateDict(saved.scaler);
  if (schedule && saved.schedule) schedule.loadStateDict(saved.schedule);
  loadCallbacks(named(callbacks), saved.callbacks);
  Object.assign(parts, saved.position);
  history.epochs.push(...saved.epochs);
  history.losses.push(...((await saved.losses?.data()) ?? []));
  const own = saved.ranks[communicator?.rank ?? 0];
  if (own === undefined) return 0; // another number of ranks
  [defaultGenerator, ...generators].forEach((generator, i) => {
    generator.loadStateDict(own.generators[i]);
  });
  totals.load(own.totals);
  const loader = statefulOf(data);
  if (own.loader && loader) loader.loadStateDict(own.loader);
  return loader ? 0 : parts.batches;
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
  for (const [name, callback] of Object.entries(callbacks)) {
    if (name in states) callback.loadStateDict?.(states[name]!);
    else console.warn(`[${WHERE}] the checkpoint must have the state of ${name}, got none. It begins anew.`);
  }
  for (const name of Object.keys(states).filter((each) => !(each in callbacks)))
    console.warn(
      `[${WHERE}] the state of ${name} in the checkpoint needs its callback, got none. Add it to callbacks.`,
    );
}

/**
 * The tree as JSON: its tensors go to `tensors` under dotted names, and numbers that JSON lacks become text.
 * By their role the tensors are not the model's: a converted checkpoint has them beside `model`.
 */
function cut(tree: unknown, path: string, tensors: Record<string, SavedTensor>): unknown {
  if (tree instanceof Tensor || tree instanceof Float32Array) {
    const saved = tree instanceof Tensor ? { tensor: tree } : { dtype: "F32", shape: [tree.length], data: tree };
    tensors[path] = { ...saved, role: "state" };
    return null;
  }
  if (typeof tree === "number") return Number.isFinite(tree) ? tree : String(tree);
  return mapped(tree, (value, key) => cut(value, `${path}.${key}`, tensors));
}

/** The inverse. */
function join(tree: unknown, path: string, tensors: Readonly<Record<string, Tensor>>): unknown {
  if (tree === null && path in tensors) return tensors[path];
  if (tree === "NaN" || tree === "Infinity" || tree === "-Infinity") return Number(tree);
  return mapped(tree, (value, key) => join(value, `${path}.${key}`, tensors));
}

/** A copy of a list or object with each value changed; others are left as they are. */
export function mapped(tree: unknown, change: (value: unknown, key: string) => unknown): unknown {
  if (typeof tree !== "object" || tree === null) return tree;
  const entries = Object.entries(tree).map(([key, value]) => [key, change(value, key)]);
  return Array.isArray(tree) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
}
