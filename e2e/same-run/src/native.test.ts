/** One training run has the same bits in native code of any instruction set and number of threads, and on two ranks. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { LedgerLine } from "@opt/checkpoint";
import { triesAll } from "@opt/testkit";
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
  const program = ranks > 1 ? [launcher, "-n", `${ranks}`, main] : [main];
  const { stdout } = await promisify(execFile)(process.execPath, [...program, ...flags], {
    env: { ...process.env, ...env },
    maxBuffer: 1 << 28,
  });
  return stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as LedgerLine);
}

const ways: [string, Record<string, string>][] = [
  ["sse2, one thread", { OPT_CPU_ISA: "sse2", OPT_NUM_THREADS: "1" }],
  ["avx2, two threads", { OPT_CPU_ISA: "avx2", OPT_NUM_THREADS: "2" }],
  ["avx512, three threads", { OPT_CPU_ISA: "avx512", OPT_NUM_THREADS: "3" }],
];

const reason = await whyNot("cpu");

describe.skipIf(reason !== null)(`in native code${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
  // By turns: each way has two models, without OPT_TEST_ALL.
  const cases = ways.flatMap(([way, env], w) =>
    models.filter((_, m) => triesAll || (w + m) % 2 === 0).map((model) => [way, model, env] as const),
  );
  it.each(cases)("with %s: %s", async (_, model, env) => {
    const options = optionsOf(model);
    await expectSame(options, () => spawned(options, "cpu", env));
  });

  // Batch norm has statistics of each rank's own half.
  it.each(["mlp", "gpt", "lstm"] as const)("on two ranks: %s", async (model) => {
    const options = optionsOf(model);
    await expectSame(options, () => spawned(options, "cpu", {}, 2));
  });
});
