/** Trains a port, eager or compiled, from seeded weights on seeded data; and its twin in Python from the same. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { compile, type DType, manualSeed, type Tensor, tidy } from "@opt/core";
import { PORTS } from "./table";

export const STEPS = 30;
/** They take turns. */
const BATCHES = 2;
const eager = ((f: unknown) => f) as typeof compile;

async function setUp(name: string, dtype: DType, compiled: typeof compile) {
  const port = PORTS[name]!;
  manualSeed(7);
  const program = await port.program(dtype, compiled);
  manualSeed(8);
  const placed = (value: Tensor) => (value.dtype === "f32" ? value.to(dtype) : value);
  const batches = Array.from({ length: BATCHES }, () => tidy(() => port.batch().map(placed)));
  return { ...program, batches };
}

/** The loss of each step. */
export async function losses(name: string, dtype: DType, isCompiled: boolean, steps: number): Promise<number[]> {
  const { step, endEpoch, isAsync, batches } = await setUp(name, dtype, isCompiled ? compile : eager);
  const run = step as (...batch: Tensor[]) => Tensor | Promise<Tensor>;
  const tidied = (...batch: Tensor[]) => tidy(() => run(...batch));
  const once = isAsync === true ? run : isCompiled ? compile(run as (...batch: Tensor[]) => Tensor) : tidied;
  const values: number[] = [];
  for (let i = 0; i < steps; i++) {
    const loss = await once(...batches[i % BATCHES]!);
    values.push(loss.dataSync()[0]!);
    endEpoch?.();
  }
  return values;
}

const told = (value: Tensor) => ({ shape: value.shape, dtype: value.dtype, numbers: Array.from(value.dataSync()) });

/** The losses of the twins, by name and dtype, from one process. */
export async function twins(python: string, names: readonly string[], dtypes: readonly DType[]) {
  const runs = [];
  for (const name of names)
    for (const dtype of dtypes) {
      const { models, batches } = await setUp(name, dtype, eager);
      const states = Object.entries(models).map(([key, model]) => [
        key,
        Object.fromEntries(model.namedTensors().map(([own, value]) => [own, told(value)])),
      ]);
      runs.push({
        name,
        dtype,
        steps: STEPS,
        states: Object.fromEntries(states),
        batches: batches.map((b) => b.map(told)),
      });
    }
  const script = fileURLToPath(new URL("twins.py", import.meta.url));
  const output = execFileSync(python, [script], { input: JSON.stringify(runs), encoding: "utf8", maxBuffer: 2 ** 28 });
  return JSON.parse(output) as Record<string, Record<string, number[]>>;
}
