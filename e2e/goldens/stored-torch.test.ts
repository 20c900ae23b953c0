// Optimizers by stored digests of PyTorch's ends: random configurations, 60 steps, some without a gradient. OPT_WRITE_GOLDENS=1 stores them again.
import { readFileSync, writeFileSync } from "node:fs";
import {
  digestOf,
  isDigestOf,
  type OptimizerOptions,
  runOptimizer,
  type TorchRun,
  torchPython,
  torchRuns,
} from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { OPTIMIZERS, torchCase, torchCases } from "./torch-cases";

/** Of the parameter and each state of PyTorch's: a digest, or a number as it is. */
interface StoredEnd {
  readonly name: string;
  readonly options: OptimizerOptions;
  readonly own: number;
  readonly end: Readonly<Record<string, string | number>>;
}

const file = new URL("torch-ends.json", import.meta.url);
const [CASES, STEPS] = [8, 60];
const near = { absolute: 1e-11, relative: 1e-11 };

const digested = (values: ArrayLike<number>) => ({ dtype: "f64", shape: [values.length], values }) as const;

function store(): void {
  const runs: TorchRun[] = torchCases(CASES, "f64", { seed: 31, steps: STEPS });
  const ends = torchRuns(runs).map((end, own): StoredEnd => {
    const told = [...end].map(([key, value]) => [key, typeof value === "number" ? value : digestOf(digested(value))]);
    return { name: runs[own]!.name, options: runs[own]!.options, own, end: Object.fromEntries(told) };
  });
  writeFileSync(file, `[\n${ends.map((end) => JSON.stringify(end)).join(",\n")}\n]\n`);
}

if (process.env.OPT_WRITE_GOLDENS === "1" && torchPython !== undefined) store();
const stored = JSON.parse(readFileSync(file, "utf8")) as readonly StoredEnd[];

describe("as PyTorch", () => {
  it.each(Object.entries(OPTIMIZERS))("%s", async (name, [Optimizer]) => {
    const own = stored.filter((each) => each.name === name);
    expect(own.length).toBe(CASES);
    for (const { options, own: seed, end } of own) {
      const { trace, state } = await runOptimizer(Optimizer, torchCase(name, "f64", options, seed, STEPS));
      const ours = new Map(state).set("param", trace.at(-1)!);
      for (const [key, theirs] of Object.entries(end)) {
        const value = ours.get(key)!;
        const what = `${key} of ${JSON.stringify(options)}`;
        if (typeof theirs === "number") expect(Math.abs((value as number) - theirs), what).toBeLessThan(1e-12);
        else expect(isDigestOf(theirs, digested(value as ArrayLike<number>), near), what).toBe(true);
      }
    }
  });
});
