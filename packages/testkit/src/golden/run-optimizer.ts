/** Runs an optimizer through given gradients, by the public API alone. */
import { type Device, type DType, parameter, type Tensor, tensor } from "@opt/core";
import { expect } from "vitest";
import { compareNumbers, type Tolerance } from "../numbers/compare";
import type { OptimizerClass, OptimizerOptions } from "./optimizer";
import { goldenRun } from "./semantics";
import type { EndState, TorchCase } from "./torch";

export interface Run {
  readonly start: ArrayLike<number>;
  /** Of the parameter; one dimension unless given. */
  readonly shape?: readonly number[];
  /** One for each step; null: no gradient. */
  readonly gradients: readonly (ArrayLike<number> | null)[];
  readonly options: OptimizerOptions;
  readonly dtype?: "f32" | "f64";
  readonly device?: Device | undefined;
}

export interface RunResult {
  /** The parameter after each step. */
  readonly trace: readonly ArrayLike<number>[];
  /** The parameter's state under PyTorch's names: arrays, and plain numbers. */
  readonly state: ReadonlyMap<string, ArrayLike<number> | number>;
}

export async function runOptimizer(Optimizer: OptimizerClass, run: Run): Promise<RunResult> {
  const { dtype = "f32", device, options, shape = [run.start.length] } = run;
  const place = { dtype: dtype as DType, device, shape };
  const weight = parameter(Array.from(run.start), { ...place, name: "weight" });
  const optimizer = new Optimizer([["weight", weight]], options);
  const trace: ArrayLike<number>[] = [];
  for (const gradient of run.gradients) {
    weight.grad = gradient === null ? null : tensor(Array.from(gradient), place);
    optimizer.step();
    trace.push(await weight.data());
  }
  const state = await readState(optimizer.stateDict().state.weight ?? {});
  weight.dispose();
  return { trace, state };
}

/** An optimizer takes the steps of a case of `semantics.json`. */
export async function expectGoldenTrace(
  id: string,
  Optimizer: OptimizerClass,
  run: Pick<Run, "options" | "dtype">,
  tolerance: Tolerance,
): Promise<void> {
  const { trace: expected, ...given } = goldenRun(id);
  const { trace } = await runOptimizer(Optimizer, { ...given, ...run });
  for (const [step, x] of expected.entries()) expect(trace[step], `after step ${step + 1}`).toAgreeWith(x, tolerance);
}

async function readState(stored: Readonly<Record<string, unknown>>): Promise<Map<string, ArrayLike<number> | number>> {
  const state = new Map<string, ArrayLike<number> | number>();
  for (const [key, value] of Object.entries(stored)) {
    if (typeof value === "number") state.set(key, value);
    else state.set(key, await (value as Tensor).data());
  }
  return state;
}

export interface GoldenReport {
  /** Words of the parameter and of all state that differ from the exact recipe. */
  readonly wordsFromExact: number;
  /** Largest absolute difference from PyTorch's own result, over the parameter and all state. */
  readonly distanceFromTorch: number;
  /** The first comparison that failed, in words. */
  readonly message: string;
}

/** Runs one case of `torchGoldens()` and compares its end state. */
export async function runTorchCase(
  Optimizer: OptimizerClass,
  golden: TorchCase,
  device?: Device,
): Promise<GoldenReport> {
  const { param0: start, gradients, options } = golden;
  const { trace, state } = await runOptimizer(Optimizer, {
    start,
    gradients,
    options,
    device,
  });
  const ours = new Map(state).set("param", trace.at(-1)!);
  let wordsFromExact = 0;
  let message = "";
  for (const [key, expected] of entriesOf(golden.exact)) {
    const comparison = compareNumbers(valueNamed(ours, key, expected), expected, "bits");
    wordsFromExact += comparison.differing;
    if (!comparison.agrees) message ||= `${key}: ${comparison.message}`;
  }
  let distanceFromTorch = 0;
  for (const [key, expected] of entriesOf(golden.torch)) {
    distanceFromTorch = Math.max(distanceFromTorch, largestDifference(valueNamed(ours, key, expected), expected));
  }
  return { wordsFromExact, distanceFromTorch, message };
}

type State = ReadonlyMap<string, ArrayLike<number> | number>;

function entriesOf(end: EndState): [string, ArrayLike<number> | number][] {
  return [...end.arrays, ...end.numbers];
}

function valueNamed(state: State, key: string, like: ArrayLike<number> | number): ArrayLike<number> | number {
  const value = state.get(key);
  if (value === undefined) throw new Error(`the optimizer's state has no ${key}, only ${[...state.keys()].join(", ")}`);
  // A state of one number may be kept as a tensor.
  return typeof like === "number" && typeof value !== "number" ? value[0]! : value;
}

function largestDifference(a: ArrayLike<number> | number, b: ArrayLike<number> | number): number {
  if (typeof a === "number" || typeof b === "number") return Math.abs(Number(a) - Number(b));
  return Array.from(a).reduce((largest, x, i) => Math.max(largest, Math.abs(x - b[i]!)), 0);
}
