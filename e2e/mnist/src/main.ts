/** Trains on MNIST with each optimizer, prints a table and the AMSGrad counterexample, and writes a report with curves. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { init, OptError } from "@opt/core";
import { type Descent, descend } from "./counterexample";
import { loadMnist } from "./data";
import { optimizerNames } from "./optimizers";
import { type Options, parseOptions } from "./options";
import { startProgress } from "./progress";
import { commandOf, type RanksResult, trainAlone } from "./ranks";
import { htmlReport } from "./report";
import { resume } from "./resume";
import { measureSpeed } from "./speed";
import { formatTable, resultTable } from "./table";
import { stepsOf, type TrainingResult, train, warmUp } from "./train";

/** What three epochs must reach. */
const REQUIRED_ACCURACY = 0.975;
const REQUIRED_AFTER_EPOCHS = 3;
const COUNTEREXAMPLE_STEPS = 20_000;
const RANKS_STEPS = 40;

/** Returns what went wrong. */
async function main(options: Options): Promise<string[]> {
  const { epochs, batchSize, seed } = options;
  const run = { epochs, batchSize, seed };
  const device = await init(options.device);
  const data = loadMnist();
  console.log(`MNIST, 784-256-10, ${epochs} × 60,000 images in batches of ${batchSize}, on ${device.name}\n`);

  const results: TrainingResult[] = [];
  for (const optimizer of options.optimizer ?? optimizerNames) {
    const ofOne = { optimizer, ...run };
    await warmUp(data, ofOne);
    const progress = startProgress(optimizer.padEnd(7), stepsOf(data, ofOne));
    try {
      results.push(await train(data, { ...ofOne, onProgress: progress.update }));
    } finally {
      progress.stop();
    }
  }
  console.log(`${formatTable(resultTable(results))}\n`);

  const descents = [descend(false, COUNTEREXAMPLE_STEPS), descend(true, COUNTEREXAMPLE_STEPS)] as const;
  const [adam, amsgrad] = descents.map((descent: Descent) => descent.trace.at(-1)!) as [
    Descent["trace"][0],
    Descent["trace"][0],
  ];
  console.log(
    "Where Adam fails (Reddi, Kale & Kumar 2018): f(x) = 1010 x every 101st time, else -10 x; best is x = -1.",
  );
  console.log(`  Adam    ends at x = ${adam.x.toFixed(2).padStart(5)}, average regret ${adam.regret.toFixed(2)}`);
  console.log(
    `  AMSGrad ends at x = ${amsgrad.x.toFixed(2).padStart(5)}, average regret ${amsgrad.regret.toFixed(2)}\n`,
  );

  console.log("One step over 1,048,576 parameters, and the memory limit: milliseconds");
  const speeds = await measureSpeed(device.name);
  for (const { optimizer, ours, limit } of speeds)
    console.log(`  ${optimizer.padEnd(7)} ${ours.toFixed(2)}, ${limit?.toFixed(2) ?? "not measured: no compiler"}`);
  await init(device.name);

  console.log("\nSaved on 4 ranks, cut anew for 3, resumed: the loss 20 steps later");
  const folder = resolve(options.out);
  await mkdir(folder, { recursive: true });
  const resumption = await resume(data, join(folder, "checkpoint"));
  const { uninterrupted, resumed } = resumption;
  const isSame = resumed.every((loss, step) => loss === uninterrupted[step]);
  console.log(`  ${resumed.at(-1)}, and ${uninterrupted.at(-1)} in the run that never stopped\n`);

  const together = await onSeveralRanks(options, device.name);
  if (together !== undefined) console.log(together.line);

  const file = join(folder, "report.html");
  await writeFile(file, htmlReport({ ...run, device: device.name, results, speeds, resumed: resumption, descents }));
  console.log(`Report: ${pathToFileURL(file)}\nNext: npm run demo`);

  const problems: string[] = [];
  if (together?.isSame === false) problems.push("ranks have other weights than one process with the same batches.");
  if (!isSame) problems.push("the resumed run has other losses than the one that never stopped.");
  for (const { optimizer, accuracies } of results) {
    const reached = accuracies.at(-1)!;
    if (epochs >= REQUIRED_AFTER_EPOCHS && reached < REQUIRED_ACCURACY)
      problems.push(`${optimizer} reached ${(100 * reached).toFixed(2)} %, below ${100 * REQUIRED_ACCURACY} %.`);
  }
  if (adam.x < 0 || amsgrad.x > -0.9) problems.push("the counterexample did not come out as published.");
  return problems;
}

/** A short run in processes of its own, beside one that takes their batches one by one. */
async function onSeveralRanks({ ranks, seed }: Options, device: string) {
  if (ranks === 1 || !["cpu", "wasm", "js"].includes(device)) return undefined;
  const run = { optimizer: "NAdam", steps: RANKS_STEPS, batchSize: 32, seed } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, commandOf(ranks, device, run), { encoding: "utf8" });
  if (status !== 0) return { isSame: false, line: stderr };
  const results: RanksResult[] = JSON.parse(stdout);
  const { digest } = await trainAlone(run, ranks);
  const isSame = results.every((result) => result.digest === digest);
  const line = `${ranks} ranks, ${RANKS_STEPS} steps: loss ${results[0]!.loss.toFixed(3)}, ${isSame ? "every bit that" : "not the bits"} of one process\n`;
  return { isSame, line };
}

try {
  const problems = await main(parseOptions(process.argv.slice(2)));
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
} catch (error) {
  if (!(error instanceof OptError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
