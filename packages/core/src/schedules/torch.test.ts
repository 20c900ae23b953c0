// The schedules as PyTorch over long runs with random options: some stored, more of itself where OPT_TORCH_PYTHON names a Python that has it.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { digestOf, isDigestOf, torchPython, withoutTorch } from "@opt/testkit";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { families, ourTrace, type Run, type Trace } from "../../testing/schedules/recipes";

const CASES = 20;

const torchProgram = `
import json, re, sys, warnings, torch
from torch.optim import lr_scheduler, swa_utils
warnings.simplefilter("ignore")
special = {"tMax": "T_max", "t0": "T_0", "tMult": "T_mult"}
def snake(key): return special.get(key) or re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), key)
def make(optimizer, recipe):
    options = {snake(key): value for key, value in recipe["options"].items()}
    kind = getattr(swa_utils if recipe["name"] == "SWALR" else lr_scheduler, recipe["name"])
    parts = [make(optimizer, part) for part in recipe.get("parts", [])]
    if recipe["name"] == "ChainedScheduler": return kind(parts)
    if parts: options["schedulers"] = parts
    if "rate" in options:
        rate = options.pop("rate")
        options["lr_lambda"] = lambda e: 1 / (1 + rate * e) if kind is lr_scheduler.LambdaLR else 1 - rate / (e + 2)
    return kind(optimizer, **options)
def trace(run):
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in run["lrs"]]
    optimizer = torch.optim.Adam(groups)
    made = [make(optimizer, recipe) for recipe in run["recipes"]]
    note = lambda: [[group["lr"], group["betas"][0]] for group in optimizer.param_groups]
    notes = [note()]
    for step in range(run["steps"]):
        for schedule in made: schedule.step(*([run["metrics"][step]] if "metrics" in run else []))
        notes.append(note())
    return notes
print(json.dumps([trace(run) for run in json.load(sys.stdin)]))
`;

function torchTraces(runs: Run[]): Trace[] {
  const options = { input: JSON.stringify(runs), encoding: "utf8", maxBuffer: 1 << 28 } as const;
  return JSON.parse(execFileSync(torchPython as string, ["-c", torchProgram], options)) as Trace[];
}

/** The largest difference, relative to what was computed where that is above 1. */
function difference(ours: Trace, theirs: Trace): number {
  const [a, b] = [ours.flat(2), theirs.flat(2)];
  expect(a.length).toBe(b.length);
  return Math.max(...a.map((value, at) => Math.abs(value - (b[at] as number)) / Math.max(1, Math.abs(value))));
}

/** A run, and the digest of PyTorch's trace of it. */
interface StoredRun {
  readonly run: Run;
  readonly trace: string;
}

const file = new URL("../../testing/goldens/schedules.json", import.meta.url);
const digested = (trace: Trace) => ({ dtype: "f64", shape: [], values: trace.flat(2) }) as const;

/** OPT_WRITE_GOLDENS=1 asks PyTorch, and stores a few runs of each family. */
function store(): void {
  const runs = families.map(([, family]) => fc.sample(family, { seed: 5, numRuns: 6 }));
  const traces = torchTraces(runs.flat()).map((trace) => digestOf(digested(trace)));
  const lines = families.map(([name], f) => {
    const told = runs[f]!.map((run, i): StoredRun => ({ run, trace: traces[f * 6 + i]! }));
    return `${JSON.stringify(name)}: [\n${told.map((each) => JSON.stringify(each)).join(",\n")}\n]`;
  });
  writeFileSync(file, `{\n${lines.join(",\n")}\n}\n`);
}

describe("by stored answers of PyTorch, beyond each period", () => {
  if (process.env.OPT_WRITE_GOLDENS === "1" && torchPython !== undefined) store();
  const stored = JSON.parse(readFileSync(file, "utf8")) as Record<string, readonly StoredRun[]>;

  it.each(families.map(([name]) => name))("%s", (name) => {
    for (const { run, trace } of stored[name]!) {
      const near = { absolute: 1e-12, relative: 1e-12 };
      for (const resumeAt of [-1, 37]) {
        expect(isDigestOf(trace, digested(ourTrace(run, resumeAt)), near), JSON.stringify(run)).toBe(true);
      }
    }
  });
});

describe.skipIf(torchPython === undefined)(`as PyTorch computes them${withoutTorch}`, () => {
  const runs = families.map(([, family]) => fc.sample(family, { seed: 2, numRuns: CASES }));
  let traces: Trace[] = [];
  beforeAll(() => {
    traces = torchTraces(runs.flat());
  });

  it.each(families.map(([name], at) => ({ name, at })))("$name", ({ at }) => {
    (runs[at] as Run[]).forEach((run, index) => {
      const theirs = traces[at * CASES + index] as Trace;
      expect(difference(ourTrace(run), theirs), JSON.stringify(run)).toBeLessThanOrEqual(1e-12);
    });
  });

  it.each(families.map(([name], at) => ({ name, at })))("$name, saved and resumed on the way", ({ at }) => {
    (runs[at] as Run[]).forEach((run, index) => {
      const theirs = traces[at * CASES + index] as Trace;
      const resumeAt = (37 * index + 11) % run.steps;
      expect(difference(ourTrace(run, resumeAt), theirs), JSON.stringify(run)).toBeLessThanOrEqual(1e-12);
    });
  });
});
