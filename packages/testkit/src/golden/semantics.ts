/** `semantics.json`: what Keras publishes, and runs of PyTorch in float64, Keras and optax; `torch-optimizers.json` and the packages' own: further runs of PyTorch. */
import { readGoldenJson, readPackageGoldens } from "./files";
import type { OptimizerOptions } from "./optimizer";

export interface SemanticsCase {
  readonly id: string;
  /** Printed in the library's own tests or docs, run by us in that library, or computed from its formula. */
  readonly kind: "published" | "run" | "computed";
  readonly source: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly expected: Readonly<Record<string, unknown>>;
}

/** A parameter's way under given gradients. */
export interface OptimizerRun {
  readonly name: string;
  readonly optimizer: string;
  readonly options: OptimizerOptions;
  readonly start: readonly number[];
  readonly gradients: readonly (readonly number[])[];
  /** The parameter after each step. */
  readonly trace: readonly (readonly number[])[];
  /** The end state under PyTorch's names, where the golden has it. */
  readonly state: Readonly<Record<string, readonly number[]>>;
}

export function semanticsGoldens(): SemanticsCase[] {
  type Stored = { readonly float64: readonly SemanticsCase[] };
  const stored = [readGoldenJson<Stored>("torch-optimizers.json"), ...readPackageGoldens<Stored>("torch")];
  return [...readGoldenJson<SemanticsCase[]>("semantics.json"), ...stored.flatMap(({ float64 }) => float64)];
}

export function semanticsGolden(id: string): SemanticsCase {
  const found = semanticsGoldens().find((each) => each.id === id);
  if (found === undefined) throw new Error(`semantics.json has no case ${id}`);
  return found;
}

/** A case's start, gradients and parameter after each step. */
export function goldenRun(id: string): Pick<OptimizerRun, "start" | "gradients" | "trace"> {
  const { inputs, expected } = semanticsGolden(id);
  const trace = (expected.trace ?? [expected.x]) as number[][];
  return { start: inputs.x0 as number[], gradients: inputs.grads as number[][], trace };
}

/** Keras' names of options that are not ours in snake case. */
const KERAS_NAMES: Readonly<Record<string, string>> = { learning_rate: "lr", epsilon: "eps" };

/** PyTorch's or Keras' options in our names. Keras' defaults and meanings are not put in: see `kerasRun`. */
export function optionsFrom(config: Readonly<Record<string, unknown>>): OptimizerOptions {
  const options: Record<string, number | boolean | readonly number[]> = {};
  for (const [key, value] of Object.entries(config)) {
    if (key === "opt" || key === "groups" || key === "note" || key.startsWith("beta_")) continue;
    const name = KERAS_NAMES[key] ?? key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    options[name] = value as number | boolean | readonly number[];
  }
  const { beta_1, beta_2 } = config as { beta_1?: number; beta_2?: number };
  if (beta_1 !== undefined && beta_2 !== undefined) options.betas = [beta_1, beta_2];
  return options;
}

/** PyTorch's float64 runs of one optimizer, single-tensor and foreach. */
export function float64Runs(optimizer: string): OptimizerRun[] {
  return semanticsGoldens()
    .filter(({ id }) => id.startsWith(`torch_${optimizer}_float64_`))
    .map(({ id, config, inputs, expected }) => ({
      name: id,
      optimizer,
      options: optionsFrom(config),
      start: inputs.x0 as number[],
      gradients: inputs.grads as number[][],
      trace: expected.trace as number[][],
      state: expected.state as Record<string, number[]>,
    }));
}

/** Keras' tables of five steps: the first with one gradient, the others with another. */
export function kerasTable(id: string, optimizer: string, extra: OptimizerOptions = {}): OptimizerRun {
  const { config, inputs, expected } = semanticsGolden(id);
  const trace = expected.x as number[][];
  const { grads_step1: first, grads_step2plus: later } = inputs as Record<string, number[]>;
  return {
    name: id,
    optimizer,
    options: { ...optionsFrom(config), ...extra },
    start: inputs.x0 as number[],
    gradients: trace.map((_, step) => (step === 0 ? first! : later!)),
    trace,
    state: {},
  };
}
