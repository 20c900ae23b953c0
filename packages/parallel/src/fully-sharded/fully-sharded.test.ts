/** Divided models on ranks beside one process that takes the same batches: every bit, and how many bytes a rank holds. */
import { describe, expect, it } from "vitest";
import { checkTraining } from "../testing/check-training";
import { runJob } from "../testing/job";
import type { Run } from "../testing/training";

const source = (path: string) => new URL(path, import.meta.url).href;
const IMPORTS = `import { trainOnRanks } from "${source("../testing/training.ts")}";`;

const base: Run = { algorithm: "AdamW", device: "cpu", steps: 10, fully: true };
const runs: Run[] = [
  base,
  { ...base, compiled: true },
  { ...base, algorithm: "NAdam", device: "js", clip: { norm: 0.5 } },
  { ...base, algorithm: "NAdam", compiled: true, clip: { norm: 0.5 } },
  { ...base, algorithm: "SGD", device: "wasm", accumulate: 3, steps: 4 },
];

describe.each([2, 4])("%d ranks", (ranks) => {
  it("train a divided model", () => checkTraining(ranks, runs, { imports: IMPORTS }));
});
