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
}

/** What each rank has of its own. */
interface RankState {
  readonly generators: readonly object[];
  readonly loader: object | null;
  readonly totals: TotalsState;
}

/** Beside `optimizer` among the values of a checkpoint. */
interface SavedRun {
  readonly position: Position;
  readonly epochs: readonly Record<string, number | null>[];
  readonly ranks: readonly RankState[];
  readonly ema: number | null;
  readonly scaler: object | null;
  readonly schedule: object | null;
  readonly callbacks: readonly unknown[];
}

/** Everything of a run that has state. */
export interface RunParts<Batch> {
  readonly module: Module;
  readonly options: FitOptions<Batch>;
  readonly callbacks: readonly Callback[];
  readonly communicator: Communicator | undefined;
  readonly position: Position;
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

/** Names of a checkpoint that are not the model's or the optimizer's begin with these. */
const EMA = "ema.";
const CALLBACKS = "fit.callbacks.";
const LOSSES = "fit.losses";

export async function contentsOf<Batch>(parts: RunParts<Batch>): Promise<CheckpointContents> {
  const { module, options, callbacks, communicator, position, totals, history } = parts;
  const { optimizerContents } = await import("@opt/checkpoint");
  const { optimizer, ema, scaler, schedule, data, generators = [] } = options;
  const sharded = optimizer as { contents?(): Promise<{ tensors: Record<string, SavedTensor>; values: object }> };
  const optimizing = sharded.contents
    ? await sharded.contents()
    : optimizerContents((await optimizer.stateDict()) as OptimizerState);
  const { n_averaged: averaged = null, ...averages } = ema?.stateDict() ?? {};
  const tensors: Record<string, SavedTensor> = { ...module.stateDict(), ...optimizing.tensors };
  for (const [name, average] of Object.entries(averages)) tensors[EMA + name] = average as Tensor;
  const plain = callbacks.map((callback, i) => cut(callback.stateDict?.(), `${CALLBACKS}${i}`, tensors) ?? null);
  const losses = Float32Array.from(history.losses);
  if (losses.length > 0) tensors[LOSSES] = { dtype: "F32", shape: [losses.length], data: losses };
  const own: RankState = {
    generators: [defaultGenerator, ...generators].map((generator) => generator.stateDict()),
    loader: parts.loader === undefined ? loaderStateOf(data) : parts.loader,
    totals: totals.state(),
  };
  const run: SavedRun = {
    position,
    epochs: history.epochs.map(withoutNaN),
    ranks: (communicator ? await communicator.gather(own) : [own]) ?? [],
    ema: averaged as number | null,
    scaler: scaler?.stateDict() ?? null,
    schedule: schedule?.stateDict() ?? null,
    callbacks: plain,
  };
  return {
    step: position.step,
    tensors,
    values: { ...optimizing.values, fit: run },
  };
}

/** Takes over what `contentsOf` gave. Returns the batches of the epoch that are to be skipped, where the data cannot go on by themselves. */
export async function loadRun<Batch>(parts: RunParts<Batch>, loaded: Loaded<Tensor>): Promise<number> {
  const { module, options, callbacks, communicator, position, totals, history } = parts;
  const { optimizer, ema, scaler, schedule, data, generators = [] } = options;
  const saved = loaded.values.fit as unknown as SavedRun | undefined;
  const problem = () => "the checkpoint must be one of fit, got another one.";
  check(
    saved?.position,
    "BAD_STATE",
    WHERE,
    problem,
    "Load its weights with model.loadStateDict, and leave out resume.",
  );
  const { optimizerState } = await import("@opt/checkpoint");
  const tensors = loaded.tensors;
  module.loadStateDict(Object.fromEntries(Object.keys(module.stateDict()).map((name) => [name, tensors[name]])));
  optimizer.loadStateDict(optimizerState(loaded));
  if (ema) ema.loadStateDict({ n_averaged: saved.ema, ...without(EMA, tensors) });
  if (scaler && saved.scaler) scaler.loadStateDict(saved.scaler);
  if (schedule && saved.schedule) schedule.loadStateDict(saved.schedule);
  callbacks.forEach((callback, i) => {
    const state = join(saved.callbacks[i], `${CALLBACKS}${i}`, tensors);
    if (state) callback.loadStateDict?.(state as object);
  });
  Object.assign(position, saved.position);
  const epochs = saved.epochs.map((epoch) => mapNumbers(epoch, (value) => value ?? Number.NaN) as EpochRecord);
  history.epochs.push(...epochs);
  history.losses.push(...((await tensors[LOSSES]?.data()) ?? []));
  const own = saved.ranks[communicator?.rank ?? 0];
  if (own === undefined) return 0; // another number of ranks
  [defaultGenerator, ...generators].forEach((generator, i) => {
    generator.loadStateDict(own.generators[i]);
  });
  totals.load(own.totals);
  const loader = statefulOf(data);
  if (own.loader && loader) loader.loadStateDict(own.loader);
  return loader ? 0 : position.batches;
}

/** The same tree without its tensors, which go to `tensors` under dotted names. */
function cut(tree: unknown, path: string, tensors: Record<string, SavedTensor>): unknown {
  if (tree instanceof Tensor) {
    tensors[path] = tree;
    return null;
  }
  if (typeof tree === "number") return Number.isFinite(tree) ? tree : String(tree);
  if (typeof tree !== "object" || tree === null) return tree;
  const entries = Object.entries(tree).map(([key, value]) => [key, cut(value, `${path}.${key}`, tensors)]);
  return Array.isArray(tree) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
}

/** The inverse. */
function join(tree: unknown, path: string, tensors: Readonly<Record<string, Tensor>>): unknown {
  if (tree === null && path in tensors) return tensors[path];
  if (tree === "NaN" || tree === "Infinity" || tree === "-Infinity") return Number(tree);
  if (typeof tree !== "object" || tree === null) return tree;
  const entries = Object.entries(tree).map(([key, value]) => [key, join(value, `${path}.${key}`, tensors)]);
  return Array.isArray(tree) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
}

const mapNumbers = <From, To>(numbers: Readonly<Record<string, From>>, change: (value: From) => To) =>
  Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, change(value)]));

/** JSON has no NaN. */
const withoutNaN = (numbers: Readonly<Record<string, number>> = {}) =>
  mapNumbers(numbers, (value) => (Number.isFinite(value) ? value : null));

const without = <Value>(prefix: string, named: Readonly<Record<string, Value>>) =>
  Object.fromEntries(
    Object.entries(named)
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), value]),
  );
