/** What a resume from a checkpoint would miss: cold or missing optimizer state, counters that differ, values that are absent. */
import { checkOptions, OptError, show } from "@opt/core";
import { underOurNames } from "../convert/names";
import { bytesOf } from "../format/dtype";
import { isCounterName } from "../format/optimizer-state";
import { isObject, type Json, type SourceTensor, type TensorSource } from "../format/source";
import { STATE_NAMES } from "../format/tensors";
import { OPEN_OPTIONS, type OpenOptions, openSource, type Place } from "../read/open";

/** `cold`, `missing` and `orphan` are faults of a resume; the others may be meant. */
export interface Finding {
  readonly kind: "cold" | "missing" | "orphan" | "stateless" | "steps" | "absent" | "unproven";
  /** The tensors, parameters or values that it is about. */
  readonly names: readonly string[];
  readonly text: string;
}

export interface Explanation {
  readonly format: string;
  readonly path: string;
  readonly step?: number;
  readonly parameters: number;
  /** How many of them have optimizer state. */
  readonly stateful: number;
  readonly findings: readonly Finding[];
}

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
    for (const place of [places].flat() as readonly Place[]) files.push(await openSource(place, options));
    const findings: Finding[] = [];
    const source = await named(files, findings);
    const states = statesOf(source);
    const groups = groupsOf(source.values);
    const listed = groups.flatMap(({ params }) => (Array.isArray(params) ? params.map(String) : []));
    const all = [...source.tensors.values()];
    const own = all.filter(
      ({ name, role, follows }) =>
        role !== "state" &&
        role !== "scalar" &&
        follows === undefined &&
        !BUFFER.test(name) &&
        stateKey(name) === undefined,
    );
    const params = listed.some((name) => source.tensors.has(name)) ? listed : own.map(({ name }) => name);
    const add = (kind: Finding["kind"], names: readonly string[], text: string) => {
      if (names.length > 0) findings.push({ kind, names, text });
    };
    const stateful = params.filter((name) => states.has(name));
    if (states.size === 0)
      add("cold", ["optimizer"], "There is no optimizer state: the optimizer of a resumed run begins cold.");
    else if (stateful.length > 0) {
      const none = params.filter((name) => !states.has(name));
      add(
        "stateless",
        none,
        `${listing(none)} of ${params.length} parameters without optimizer state: frozen or never stepped, else their state is lost.`,
      );
    }
    for (const [key, names] of missingOf(states, groups))
      add("missing", names, `${key} is missing for ${listing(names)}: it begins at zero.`);
    const cold: string[] = [];
    for (const [name, state] of states) if (await isCold(state)) cold.push(name);
    add("cold", cold, `The state of ${listing(cold)} is cold: it is all zeros, or has counted no step.`);
    const isKnown = (owner: string) => source.tensors.has(owner) || params.includes(owner);
    const orphans =
      params.length === 0 || stateful.length === 0 ? [] : [...states.keys()].filter((owner) => !isKnown(owner));
    add(
      "orphan",
      orphans,
      `State follows no parameter: that of ${listing(orphans)}. The parameter was renamed, or is not saved.`,
    );
    const steps = new Map<number, string[]>();
    for (const [name, state] of states) {
      const step = await numberOf(state.get("step"));
      if (step !== undefined) steps.set(step, [...(steps.get(step) ?? []), name]);
    }
    if (steps.size > 1) {
      const counts = [...steps].map(([step, names]) => `${step} for ${listing(names)}`);
      add(
        "steps",
        [...steps.values()].flat(),
        `Step counters differ: ${counts.slice(0, 4).join("; ")}. Right only if parameters were frozen or added on the way.`,
      );
    }
    const absent = Object.entries(AROUND).filter(
      ([, pattern]) => !holds(source.values, pattern) && ![...source.tensors.keys()].some((name) => pattern.test(name)),
    );
    const kinds = absent.map(([kind]) => kind);
    add("absent", kinds, `There is no ${kinds.join(", no ")}: if the run has one, it begins anew.`);
    const { format, path, step } = source;
    return {
      format,
      path,
      ...(step === undefined ? {} : { step }),
      parameters: params.length,
      stateful: stateful.length,
      findings,
    };
  } finally {
    for (const file of files) await file.close();
  }
}

/** Under our names; under the file's own where nothing proves whose a state is. */
async function named(files: readonly TensorSource[], findings: Finding[]): Promise<TensorSource> {
  try {
    return await underOurNames(files);
  } catch (error) {
    if (!(error instanceof OptError && error.code === "BAD_STATE" && files.length === 1)) throw error;
    findings.push({ kind: "unproven", names: [], text: error.message });
    return files[0]!;
  }
}

/** What a name says of its tensor, where it is one of an optimizer: `exp_avg`. */
function stateKey(name: string): string | undefined {
  const key = name.slice(Math.max(name.lastIndexOf("."), name.lastIndexOf("/")) + 1);
  return key !== name && (STATE_NAMES.has(key) || isCounterName(name)) ? key : undefined;
}

/** By parameter, or by what the file calls it. */
function statesOf({ tensors, values }: TensorSource): States {
  const states: States = new Map();
  const put = (owner: string, key: string, value: SourceTensor | number) => {
    if (!states.has(owner)) states.set(owner, new Map());
    states.get(owner)!.set(key, value);
  };
  for (const tensor of tensors.values()) {
    const { name, follows, role } = tensor;
    if (name.startsWith("fit.")) continue;
    const key =
      follows === undefined
        ? undefined
        : name.startsWith(`${follows}.`)
          ? name.slice(follows.length + 1)
          : name.slice(0, -follows.length - 1);
    const guessed = stateKey(name);
    if (key !== undefined) put(follows!, key, tensor);
    else if (guessed !== undefined && role !== "param") put(name.slice(0, -guessed.length - 1), guessed, tensor);
  }
  for (const saved of Object.values(values)) {
    const counters = isObject(saved) && isObject(saved.counters) ? saved.counters : {};
    for (const [param, own] of Object.entries(counters))
      if (isObject(own))
        for (const [key, value] of Object.entries(own)) if (typeof value === "number") put(param, key, value);
  }
  return states;
}

type Groups = readonly { readonly [option: string]: Json }[];

const groupsOf = (values: { readonly [key: string]: Json }): Groups =>
  Object.values(values).flatMap((saved) =>
    isObject(saved) && Array.isArray(saved.groups) ? saved.groups.filter(isObject) : [],
  );

/** Moments that other parameters have, and those that options or other moments ask for. */
function missingOf(states: States, groups: Groups): Map<string, string[]> {
  const keys = new Set([...states.values()].flatMap((state) => [...state.keys()]));
  const isOn = (option: string) => groups.length > 0 && groups.every((group) => Boolean(group[option]));
  if (isOn("amsgrad")) keys.add("max_exp_avg_sq");
  if (isOn("momentum") && keys.size > 0 && !keys.has("square_avg")) keys.add("momentum_buffer");
  // With eps, what has a first moment divides by a second one.
  if (keys.has("exp_avg") && (isOn("eps") || groups.length === 0) && !keys.has("exp_inf")) keys.add("exp_avg_sq");
  if (keys.has("exp_avg_sq") && (isOn("betas") || groups.length === 0)) keys.add("exp_avg");
  const missing = new Map<string, string[]>();
  for (const key of keys) {
    const names = [...states].filter(([, state]) => state.size > 0 && !state.has(key)).map(([name]) => name);
    if (names.length > 0) missing.set(key, names);
  }
  return missing;
}

async function isCold(state: ReadonlyMap<string, SourceTensor | number>): Promise<boolean> {
  if ((await numberOf(state.get("step"))) === 0) return true;
  const tensors = [...state].filter(
    ([key, value]) => key !== "step" && key !== "master_param" && typeof value !== "number",
  );
  for (const [, tensor] of tensors) if (!(await isZero(tensor as SourceTensor))) return false;
  return tensors.length > 0;
}

/** Reads up to the first element that is not zero. */
async function isZero({ boxes }: SourceTensor): Promise<boolean> {
  for (const box of boxes)
    for (let start = 0; start < box.byteLength; start += CHUNK) {
      const bytes = new Uint8Array(Math.min(CHUNK, box.byteLength - start));
      await box.read(bytes, start);
      if (bytes.some((byte) => byte !== 0)) return false;
    }
  return true;
}

async function numberOf(value: SourceTensor | number | undefined): Promise<number | undefined> {
  if (value === undefined || typeof value === "number") return value;
  const arrays = { F32: Float32Array, F64: Float64Array, I32: Int32Array, I64: BigInt64Array } as const;
  const array = arrays[value.dtype as keyof typeof arrays];
  const [box] = value.boxes;
  if (!array || box === undefined || bytesOf(value) !== array.BYTES_PER_ELEMENT) return undefined;
  const bytes = new Uint8Array(array.BYTES_PER_ELEMENT);
  await box.read(bytes, 0);
  return Number(new array(bytes.buffer)[0]);
}

/** Whether a member of such a name, at any depth, has a value. */
function holds(value: Json, pattern: RegExp): boolean {
  if (Array.isArray(value)) return value.some((item) => holds(item, pattern));
  return (
    isObject(value) &&
    Object.entries(value).some(
      ([key, item]) => (pattern.test(key) && item !== null && show(item) !== "{}") || holds(item, pattern),
    )
  );
}

const listing = (names: readonly string[]) =>
  names.slice(0, 5).join(", ") + (names.length > 5 ? ` and ${names.length - 5} more` : "");
