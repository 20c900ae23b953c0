/** One training run has the same bits everywhere: js, WebAssembly, native code of any instruction set and number of threads, a page, two ranks. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { compareLedgers, type LedgerLine } from "@opt/checkpoint";
import { init, listDevices } from "@opt/core";
import { executablePath, launchBrowser, openPage, serveProgram } from "@opt/testkit/browser";
import { describe, expect, it } from "vitest";
import { type RunOptions, trainedLedger } from "./run";

const STEPS = 12;
const models = ["mlp", "cnn", "gpt", "lstm"] as const;
const optimizers = ["NAdam", "AdamW", "AMSGrad", "SGD"] as const;
const same = { steps: STEPS, first: null };

const known = new Map<string, Promise<readonly LedgerLine[]>>();

/** The definition: the js device, eager. */
function expected(options: RunOptions): Promise<readonly LedgerLine[]> {
  const key = `${options.model} ${options.optimizer}`;
  if (!known.has(key))
    known.set(
      key,
      init("js").then(() => trainedLedger(options)),
    );
  return known.get(key)!;
}

const optionsOf = (model: RunOptions["model"], optimizer: RunOptions["optimizer"] = "NAdam"): RunOptions => {
  return { model, optimizer, steps: STEPS };
};

const available = new Map(
  (await listDevices()).map(({ name, available, reason }) => [name, available ? null : reason]),
);

async function whyNot(name: string): Promise<string | null> {
  const reason = available.get(name);
  if (reason !== null) return reason ?? "it is not registered";
  return (await init(name)).portable ? null : "its WebAssembly has no fused multiply-add";
}

describe.each(["js", "wasm", "cpu"])("on %s", async (device) => {
  const reason = await whyNot(device);
  const title = reason === null ? "" : ` (skipped: ${reason})`;
  const cases = models.flatMap((model) => optimizers.map((optimizer) => [model, optimizer] as const));
  it.skipIf(reason !== null).each(cases)(`%s by %s, eager and compiled${title}`, async (model, optimizer) => {
    const options = optionsOf(model, optimizer);
    const reference = await expected(options);
    await init(device);
    for (const compiled of device === "js" ? [true] : [false, true]) {
      expect(compareLedgers(reference, await trainedLedger({ ...options, compiled }))).toEqual(same);
    }
  });
});

const main = fileURLToPath(new URL("main.ts", import.meta.url));
const launcher = fileURLToPath(new URL("src/local/cli.ts", import.meta.resolve("@opt/parallel/package.json")));

/** The ledger of a run in processes of its own. */
async function spawned(options: RunOptions, device: string, env: Record<string, string>, ranks = 1) {
  const { model, optimizer, steps } = options;
  const flags = ["--device", device, "--model", model, "--optimizer", optimizer, "--steps", `${steps}`, "--compiled"];
  const program = ranks > 1 ? [launcher, "-n", `${ranks}`, main] : [main];
  const args = ["--conditions=@opt/source", "--import", "tsx", ...program, ...flags];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...process.env, ...env },
    maxBuffer: 1 << 28,
  });
  return stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as LedgerLine);
}

const cpuReason = await whyNot("cpu");
const ways: [string, Record<string, string>][] = [
  ...["sse2", "avx2", "avx512"].map((isa): [string, Record<string, string>] => [isa, { OPT_ISA: isa }]),
  ["one thread", { OPT_NUM_THREADS: "1" }],
  ["two threads", { OPT_NUM_THREADS: "2" }],
];

describe.skipIf(cpuReason !== null)("in native code", () => {
  it.each(ways.flatMap(([way, env]) => models.map((model) => [way, model, env] as const)))(
    "with %s: %s",
    async (_, model, env) => {
      const options = optionsOf(model);
      expect(compareLedgers(await expected(options), await spawned(options, "cpu", env))).toEqual(same);
    },
  );

  // Batch norm has statistics of each rank's own half.
  it.each(["mlp", "gpt", "lstm"] as const)("on two ranks: %s", async (model) => {
    const options = optionsOf(model);
    expect(compareLedgers(await expected(options), await spawned(options, "cpu", {}, 2))).toEqual(same);
  });
});

const browserReason = executablePath === undefined ? " (skipped: no Chromium is installed)" : "";

it.skipIf(executablePath === undefined)(`in Chromium${browserReason}`, async () => {
  const server = await serveProgram(join(import.meta.dirname, "page.ts"), { isolated: true });
  const browser = await launchBrowser({ webgpu: false });
  try {
    const page = await openPage(browser);
    await page.goto(server.url);
    await page.waitForFunction(() => "sameRun" in globalThis);
    expect(await page.evaluate(() => globalThis.sameRun.portable)).toBe(true);
    for (const model of models) {
      const options = { ...optionsOf(model), compiled: true };
      const lines = await page.evaluate((given) => globalThis.sameRun.trainedLedger(given), options);
      expect([model, compareLedgers(await expected(options), lines)]).toEqual([model, same]);
    }
  } finally {
    await browser.close();
    server.close();
  }
});
