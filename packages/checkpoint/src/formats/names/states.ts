/** What each system calls the states of optimizers that we call as PyTorch does, in one table; and the rules of names that need no more. */
import type { Json, TensorSource } from "../../format/source";
import { isObject } from "../bytes/json";
import type { NamingContext, Renaming, UnprovenState } from "./renaming";

interface Words {
  /** MindSpore: `moment1.<parameter>`; the first is the one that is written. */
  readonly prefixes?: readonly string[];
  /** TF.js: `<parameter>/m`; Paddle: `<parameter>_moment1_0`. */
  readonly suffixes?: readonly string[];
}

const STATES: Readonly<Record<string, Words>> = {
  exp_avg: { prefixes: ["moment1", "adam_m", "exp_avg"], suffixes: ["/m", "_moment1_0"] },
  exp_avg_sq: { prefixes: ["moment2", "adam_v", "exp_avg_sq"], suffixes: ["/v", "_moment2_0"] },
  max_exp_avg_sq: { prefixes: ["vhat", "max_exp_avg_sq"], suffixes: ["_moment2_max_0"] },
  momentum_buffer: { prefixes: ["moments"], suffixes: ["/momentum", "_velocity_0"] },
  square_avg: {},
  acc_delta: {},
  grad_avg: {},
  sum: {},
  exp_inf: {},
  prev: {},
  step_size: {},
  ax: {},
  exp_avg_fast: {},
  exp_avg_slow: {},
  z: {},
  variance: {},
  master_param: {},
};

export const SHAPED_STATES: readonly string[] = Object.keys(STATES);

/** The states that Keras' optimizers keep for each parameter, in the order in which they follow each other. */
export const KERAS_STATES: Readonly<Record<string, readonly string[]>> = {
  Adam: ["exp_avg", "exp_avg_sq"],
  AdamW: ["exp_avg", "exp_avg_sq"],
  Nadam: ["exp_avg", "exp_avg_sq"],
  SGD: ["momentum_buffer"],
};

const entriesOf = (kind: keyof Words): [word: string, state: string][] =>
  Object.entries(STATES).flatMap(([state, words]) =>
    (words[kind] ?? []).map((word): [string, string] => [word, state]),
  );

const PREFIXES = new Map(entriesOf("prefixes"));
const SUFFIXES = entriesOf("suffixes");

/** MindSpore: `moment1.<parameter>`; `global_step` (or `state_step`) counts for all. */
export function prefixedNames({ tensors }: NamingContext): Renaming {
  const names = new Map<string, string>();
  for (const name of tensors.keys()) {
    const dot = name.indexOf(".");
    const state = PREFIXES.get(name.slice(0, Math.max(0, dot)));
    const parameter = name.slice(dot + 1);
    if (state !== undefined && tensors.has(parameter)) names.set(name, `${parameter}.${state}`);
  }
  return { names, counter: tensors.has("global_step") ? "global_step" : "state_step" };
}

/** The inverse, for writing: what MindSpore's Adam (or Momentum) calls the state of a parameter. */
export function mindsporeName(name: string, follows: string | undefined): string {
  if (follows === undefined || !name.startsWith(`${follows}.`)) return name;
  const state = name.slice(follows.length + 1);
  const [word] = (Object.hasOwn(STATES, state) && STATES[state]!.prefixes) || [];
  return word === undefined ? name : `${word}.${follows}`;
}

/** What Paddle calls its table of names: what the layer calls a parameter, and what the parameter calls itself. */
export const PADDLE_NAMES = "StructuredToParameterName@@";

/** TF.js: `<parameter>/m`, counted by `iter`; Paddle: `<parameter>_moment1_0`, its parameters in a file of their own. */
export function suffixedNames({ source, tensors, beside }: NamingContext): Renaming {
  const names = new Map<string, string>();
  const unproven: UnprovenState[] = [];
  const layers = layerNames([source, ...beside]);
  const isPaddle = source.format === "Paddle";
  for (const name of source.tensors.keys()) {
    for (const [suffix, state] of SUFFIXES) {
      if (!name.endsWith(suffix)) continue;
      const own = name.slice(0, -suffix.length);
      const parameter = layers.get(own) ?? own;
      if (tensors.has(parameter) || (isPaddle && beside.length === 0)) names.set(name, `${parameter}.${state}`);
      else if (isPaddle) unproven.push({ key: name, meaning: `<what the model calls ${own}>.${state}` });
    }
  }
  return { names, counter: "iter", unproven };
}

/** Paddle's optimizer knows parameters by names of their own; the model's file says what its layers call them. */
function layerNames(sources: readonly TensorSource[]): Map<string, string> {
  const tables = sources.map(({ values }) => values[PADDLE_NAMES]).filter((table) => isObject(table));
  const pairs = tables.flatMap((table) => Object.entries(table as { [key: string]: Json }));
  return new Map(pairs.map(([layer, own]) => [String(own), layer]));
}
