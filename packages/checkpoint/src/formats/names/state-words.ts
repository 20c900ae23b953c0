import type { Json, TensorSource } from "../../format/source";
import { isObject } from "../bytes/json";
import type { NamingContext, Renaming, Unproven } from "./renaming";

/** What each system calls the states that we call as PyTorch does. */
const PREFIXES: Record<string, string> = {
  moments: "momentum_buffer",
  moment1: "exp_avg",
  moment2: "exp_avg_sq",
  vhat: "max_exp_avg_sq",
  adam_m: "exp_avg",
  adam_v: "exp_avg_sq",
  exp_avg: "exp_avg",
  exp_avg_sq: "exp_avg_sq",
  max_exp_avg_sq: "max_exp_avg_sq",
};

const SUFFIXES: [RegExp, string][] = [
  [/\/m$/, "exp_avg"],
  [/\/v$/, "exp_avg_sq"],
  [/\/momentum$/, "momentum_buffer"],
  [/_moment1_0$/, "exp_avg"],
  [/_moment2_0$/, "exp_avg_sq"],
  [/_moment2_max_0$/, "max_exp_avg_sq"],
  [/_velocity_0$/, "momentum_buffer"],
];

/** MindSpore: `moment1.<parameter>`; `global_step` (or `state_step`) counts for all. */
export function prefixedNames({ tensors }: NamingContext): Renaming {
  const names = new Map<string, string>();
  for (const name of tensors.keys()) {
    const dot = name.indexOf(".");
    const word = name.slice(0, Math.max(0, dot));
    const parameter = name.slice(dot + 1);
    const state = Object.hasOwn(PREFIXES, word) ? PREFIXES[word] : undefined;
    if (state !== undefined && tensors.has(parameter)) names.set(name, `${parameter}.${state}`);
  }
  return { names, counter: tensors.has("global_step") ? "global_step" : "state_step" };
}

/** The inverse, for writing: what MindSpore's Adam (or Momentum) calls the state of a parameter. */
export function mindsporeName(name: string, follows: string | undefined): string {
  if (follows === undefined || !name.startsWith(`${follows}.`)) return name;
  const state = name.slice(follows.length + 1);
  const word = Object.keys(PREFIXES).find((prefix) => PREFIXES[prefix] === state);
  return word === undefined ? name : `${word}.${follows}`;
}

/** What Paddle calls its table of names: what the layer calls a parameter, and what the parameter calls itself. */
export const PADDLE_NAMES = "StructuredToParameterName@@";

/** TF.js: `<parameter>/m`, counted by `iter`; Paddle: `<parameter>_moment1_0`, its parameters in a file of their own. */
export function suffixedNames({ source, tensors, beside }: NamingContext): Renaming {
  const names = new Map<string, string>();
  const unproven: Unproven[] = [];
  const layers = layerNames([source, ...beside]);
  for (const name of source.tensors.keys()) {
    for (const [suffix, state] of SUFFIXES) {
      const own = name.replace(suffix, "");
      if (own === name) continue;
      const parameter = layers.get(own) ?? own;
      if (tensors.has(parameter) || (source.format === "Paddle" && beside.length === 0)) {
        names.set(name, `${parameter}.${state}`);
      } else if (source.format === "Paddle") {
        unproven.push({ key: name, meaning: `<what the model calls ${own}>.${state}` });
      }
    }
  }
  return { names, counter: "iter", unproven };
}

/** Paddle's optimizer knows parameters by names of their own; the model's file says what its layers call them. */
function layerNames(sources: readonly TensorSource[]): Map<string, string> {
  const tables = sources.map(({ values }) => values[PADDLE_NAMES]).filter((table) => isObject(table as Json));
  return new Map(
    tables.flatMap((table) =>
      Object.entries(table as { [key: string]: Json }).map(([layer, own]) => [String(own), layer]),
    ),
  );
}
