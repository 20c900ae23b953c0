/** One training run has the same bits in native code of any instruction set and number of threads, and on two ranks. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { LedgerLine } from "@opt/checkpoint";
import { openCpuBackend } from "@opt/kernels-cpu";
import { triesAll, whyUnavailable } from "@opt/testkit";
import { bundled, optRun } from "@opt/testkit/bundled";
import { describe, it } from "vitest";
import type { RunOptions } from "./run";
import { deviceTests, expectSame, models, optionsOf, whyNot } from "./testing";

await deviceTests("js");
await deviceTests("cpu");

const [launcher, main] = await bundled(optRun, fileURLToPath(new URL("main.ts", import.meta.url)));

/** The ledger of a run in processes of its own. */
async function spawned(options: RunOptions, device: string, env: Record<string, string>, ranks = 1) {
  const { model, optimizer, steps } = options;
  const flags = ["--device", device, "--model", model, "--optimizer", optimizer, "--steps", `${steps}`, "--compiled"];
  const program = ranks > 1 ? [launcher, "--no-prefix", "-n", `${ranks}`, main] : [main];
  const { stdout } = await promisify(execFile)(process.execPath, [...program, ...flags], {
    env: { ...process.env, ...env },
    maxBuffer: 1 << 28,
  });
  return stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as LedgerLine);
}

/** Instruction sets, each with a number of threads. */
const SETS = process.arch === "arm64" ? ["neon"] : ["sse2", "avx2", "avx512"];
const ways = await Promise.all(
  SETS.map(async (instructionSet, i) => ({
    instructionSet,
    threads: i + 1,
    missing: await whyUnavailable(async () => openCpuBackend({ instructionSet })),
  })),
);

const reason = await whyNot("cpu");

describe.skipIf(reason !== null)(`in native code${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
  // By turns: each way has two models, without OPT_TEST_ALL.
  for (const [w, { instructionSet, threads, missing }] of ways.entries()) {
    const tried = models.filter((_, m) => triesAll || (w + m) % 2 === 0);
    it.for(tried)(`with ${instructionSet}, threads: ${threads}, %s`, async (model, { skip }) => {
      skip(missing !== undefined, missing);
      const options = optionsOf(model);
      const env = { OPT_CPU_ISA: instructionSet, OPT_NUM_THREADS: `${threads}` };
      await expectSame(options, () => spawned(options, "cpu", env));
    });
  }

  // Batch norm has statistics of each rank's own half.
  it.each(["mlp", "gpt", "lstm"] as const)("on two ranks: %s", async (model) => {
    const options = optionsOf(model);
    await expectSame(options, () => spawned(options, "cpu", {}, 2));
  });
});
