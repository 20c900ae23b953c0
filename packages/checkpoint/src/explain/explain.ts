/** What a resume from a checkpoint would miss: cold or missing optimizer state, counters that differ, values that are absent. */
import { checkOptions, OptError } from "@opt/core";
import { isCounterName } from "../format/optimizer-state";
import { isObject, type Json, type SourceTensor, type TensorSource } from "../format/source";
import { STATE_NAMES } from "../format/tensors";
import { scalarOf } from "../formats/names/scalars";
import { underOurNames } from "../naming/names";
import { OPEN_OPTIONS, type OpenOptions, openSource, type Place } from "../read/open";

/** `cold`, `missing` and `orphan` are faults of a resume; the others may be meant. */
export interface Finding {
  readonly kind: "cold" | "missing" | "orphan" | "stateless" | "steps" | "absent" | "unproven";
  /** The parameters or values that it is about. */
  readonly names: readonly string[];
  readonly text: string;
}

export interface Explanation {
  readonly format: string;
  readonly path: string;
  readonly parameters: number;
  /** How many of them have optimizer state. */
  readonly stateful: number;
  readonly findings: readonly Finding[];
}

/** By parameter, or what the file calls it: its state by key. */
type States = Map<string, Map<string, SourceTensor | number>>;

const BUFFER = /(^|\.)(running_(mean|var)|num_batches_tracked)$/;
const AROUND = { schedule: /sched/i, scaler: /scaler/i, generator: /rng|random|generator/i };
const CHUNK = 2 ** 20;

/** See `explainCheckpoint` in operations.ts. */
export async function explainCheckpoint(
  places: Place | readonly Place[],
  options: OpenOptions = {},
): Promise<Explanation> {
  checkOptions("explainCheckpoint", options, OPEN_OPTIONS);
  const files: TensorSource[] = [];
  try {
    for (const place of [places].flat() as Place[]) files.push(await openSource(place, options));
    return await explain(files);
  } finally {
    for (const file of files) await file.close();
  }
}

async function explain(files: readonly TensorSource[]): Promise<Explanation> {
  const findings: Finding[] = [];
  const add = (kind: Finding["kind"], names: readonly string[], text: (shown: string) => string) => {
    const shown = names.slice(0, 5).join(", ") + (names.length > 5 ? ` and ${names.length - 5} more` : "");
    if (names.length > 0) findings.push({ kind, names, text: text(shown) });
  };
  const source = await underOurNames(files).catch(async (error) => {
    if (!(error instanceof OptError && error.code === "BAD_STATE")) throw error;
    const ordered = await underOurNames(files, { parameterOrder: "model" }).catch(() => undefined);
    if (!ordered && files.length > 1) throw error;
    const by = ordered ? "the model's order" : "what the file calls it";
    add("unproven", [files[0]!.path], () => `Nothing proves whose optimizer state this is: names go by ${by}.`);
    return ordered ?? files[0]!;
  });
  const { tensors, values, format, path } = source;
  const states = statesOf(source);
  const groups = Object.values(values).flatMap((saved) => (isObject(saved) && saved.groups) || []) as Groups;
  const listed = groups.flatMap(({ params }) => (params as string[] | undefined) ?? []);
  const isOwn = ({ name, role, follows }: SourceTensor) =>
    (role ?? "param") === "param" && follows === undefined && !BUFFER.test(name) && keyOf(name) === undefined;
  const named = [...tensors.values()].filter(isOwn).map(({ name }) => name);
  const params = listed.some((name) => tensors.has(name)) ? listed : named;
  const [stateful, stateless] = [true, false].map((has) => params.filter((name) => states.has(name) === has));
  const isPlain = groups.length > 0 && groups.every((group) => "dampening" in group && !group.momentum);
  if (states.size === 0 && !isPlain)
    add("cold", ["optimizer"], () => "There is no optimizer state: the optimizer begins cold.");
  else if (stateful!.length > 0)
    add("stateless", stateless!, (shown) => `No optimizer state: ${shown}. Frozen or never stepped, else it is lost.`);
  for (const [key, names] of missingOf(states, groups))
    add("missing", names, (shown) => `${key} is missing, it begins at zero: ${shown}.`);
  const steps = new Map<number, string[]>();
  const cold: string[] = [];
  for (const [name, state] of states) {
    const counter = state.get("step");
    const step = typeof counter === "object" ? await scalarOf(counter) : counter;
    if (step !== undefined) steps.set(step, [...(steps.get(step) ?? []), name]);
    if (step === 0 || (await areZero(state))) cold.push(name);
  }
  add("cold", cold, (shown) => `The state is cold, all zeros or of no step: ${shown}.`);
  const orphans = stateful!.length === 0 ? [] : [...states.keys()].filter((name) => !tensors.has(name));
  add("orphan", orphans, (shown) => `State follows no parameter: ${shown}. It was renamed, or is not saved.`);
  const counts = [...steps].map(([step, [name, ...others]]) => `${step} (${name} and ${others.length} more)`);
  if (steps.size > 1)
    add("steps", [...steps.values()].flat(), () => `Step counters differ: ${counts.slice(0, 4).join(", ")}.`);
  const isThere = (pattern: RegExp) => holds(values, pattern) || [...tensors.keys()].some((name) => pattern.test(name));
  const absent = Object.entries(AROUND).flatMap(([kind, pattern]) => (isThere(pattern) ? [] : [kind]));
  add("absent", absent, (shown) => `Not saved, it begins anew if the run has one: ${shown}.`);
  return { format, path, parameters: params.length, stateful: stateful!.length, findings };
}

/** The state that a name says a tensor is: `exp_avg`. */
function keyOf(name: string): string | undefined {
  const key = name.slice(Math.max(name.lastIndexOf("."), name.lastIndexOf("/")) + 1);
  return key !== name && (STATE_NAMES.has(key) || isCounterName(name)) ? key : undefined;
}

function statesOf({ tensors, values }: TensorSource): States {
  const states: States = new Map();
  const put = (owner: string, key: string, value: SourceTensor | number) =>
    states.set(owner, (states.get(owner) ?? new Map()).set(key, value));
  for (const tensor of tensors.values()) {
    const { name, follows = "", role } = tensor;
    const key = follows === "" ? keyOf(name) : name.replace(follows, "").replace(/^[./]|[./]$/g, "");
    if (key === undefined || name.startsWith("fit.") || (follows === "" && role === "param")) continue;
    put(follows || name.slice(0, -key.length - 1), key, tensor);
  }
  for (const saved of Object.values(values))
    for (const [param, counters] of Object.entries((isObject(saved) && saved.counters) || {}))
      for (const [key, count] of Object.entries(counters as Record<string, number>)) put(param, key, count);
  return states;
}

type Groups = readonly { readonly [option: string]: Json }[];

/** Of optimizers whose moments are not Adam's. */
const NO_ADAM = /^(exp_inf|exp_avg_fast|z|hessian|factor_.*)$/;

/** What the parameter's shape tells whether there is. */
const OF_SOME = /^(row_var|col_var|variance|projection|update_norm|\w+_\d+)$/;

/** Moments that other parameters have, and those that options or other moments ask for. */
function missingOf(states: States, groups: Groups): Map<string, string[]> {
  const keys = new Set([...states.values()].flatMap((state) => [...state.keys()]));
  const isOn = (option: string) => groups.length > 0 && groups.every((group) => Boolean(group[option]));
  if (isOn("amsgrad")) keys.add("max_exp_avg_sq");
  if (isOn("momentum") && !keys.has("square_avg")) keys.add("momentum_buffer");
  const isAdam = (groups.length === 0 || (isOn("betas") && isOn("eps"))) && ![...keys].some((key) => NO_ADAM.test(key));
  if (isAdam && keys.has("exp_avg")) keys.add("exp_avg_sq");
  if (isAdam && keys.has("exp_avg_sq")) keys.add("exp_avg");
  for (const key of keys) if (OF_SOME.test(key)) keys.delete(key);
  const without = (key: string) => [...states].filter(([, state]) => !state.has(key)).map(([name]) => name);
  return new Map([...keys].map((key) => [key, without(key)]));
}

/** Reads up to the first byte that is not zero. */
async function areZero(state: ReadonlyMap<string, SourceTensor | number>): Promise<boolean> {
  const moments = [...state].flatMap(([key, value]) => (typeof value === "object" && key !== "step" ? [value] : []));
  for (const box of moments.flatMap(({ boxes }) => boxes))
    for (let start = 0; start < box.byteLength; start += CHUNK) {
      const bytes = new Uint8Array(Math.min(CHUNK, box.byteLength - start));
      await box.read(bytes, start);
      if (bytes.some((byte) => byte !== 0)) return false;
    }
  return moments.length > 0;
}

/** Whether a member of such a name, at any depth, has a value. */
function holds(value: Json, pattern: RegExp): boolean {
  if (Object(value) !== value) return false;
  return Object.entries(value as object).some(
    ([key, item]) => (pattern.test(key) && (item ?? "") !== "" && String(item) !== "[]") || holds(item, pattern),
  );
}
