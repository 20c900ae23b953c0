import type { TensorSource } from "../../format/source";
import type { Renaming } from "./renaming";

/** What each system calls the states that we call as PyTorch does. */
const PREFIXES: Record<string, string> = {
  moments: "momentum_buffer",
  moment1: "exp_avg",
  moment2: "exp_avg_sq",
  vhat: "max_exp_avg_sq",
  adam_m: "exp_avg",
  adam_v: "exp_avg_sq",
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

/** MindSpore: `moment1.<parameter>`; `global_step` counts for all. */
export function prefixedNames(source: TensorSource): Renaming {
  const names = new Map<string, string>();
  for (const name of source.tensors.keys()) {
    const dot = name.indexOf(".");
    const word = name.slice(0, Math.max(0, dot));
    const parameter = name.slice(dot + 1);
    const state = Object.hasOwn(PREFIXES, word) ? PREFIXES[word] : undefined;
    if (state !== undefined && source.tensors.has(parameter)) names.set(name, `${parameter}.${state}`);
  }
  return { names, counter: "global_step" };
}

/** The inverse, for writing: what MindSpore's Adam (or Momentum) calls the state of a parameter. */
export function mindsporeName(name: string, follows: string | undefined): string {
  if (follows === undefined || !name.startsWith(`${follows}.`)) return name;
  const state = name.slice(follows.length + 1);
  const word = Object.keys(PREFIXES).find((prefix) => PREFIXES[prefix] === state);
  return word === undefined ? name : `${word}.${follows}`;
}

/** TF.js: `<parameter>/m`, counted by `iter`; Paddle: `<parameter>_moment1_0`, its parameters in a file of their own. */
export function suffixedNames(source: TensorSource): Renaming {
  const names = new Map<string, string>();
  for (const name of source.tensors.keys()) {
    for (const [suffix, state] of SUFFIXES) {
      const parameter = name.replace(suffix, "");
      const known = source.tensors.has(parameter) || source.format === "Paddle";
      if (parameter !== name && known) names.set(name, `${parameter}.${state}`);
    }
  }
  return { names, counter: "iter" };
}
