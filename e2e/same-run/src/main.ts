/** One run: `main.ts --device cpu --model gpt`, or under opt-run. Prints its ledger, or writes it with `--out`. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { writeFileSync } from "node:fs";
import { init } from "@opt/core";
import { connect, DataParallel } from "@opt/parallel";
import { Command } from "commander";
import { type RunOptions, trainedLedger } from "./run";

const program = new Command("same-run")
  .description("Trains a small model and prints the checksums of every step: the same on every portable device.")
  .option("--device <name>", "js, wasm or cpu", "cpu")
  .option("--model <name>", "mlp, cnn, gpt or lstm", "gpt")
  .option("--optimizer <name>", "NAdam, AdamW, AMSGrad or SGD", "NAdam")
  .option("--steps <count>", "training steps", Number, 20)
  .option("--compiled", "compiled steps")
  .option("--out <file>", "write the ledger to a file: see opt-checkpoint ledger")
  .parse();

const { device: name, out, ...options } = program.opts<RunOptions & { device: string; out?: string }>();
const device = await init(name);
const communicator = process.env.OPT_RUN_RANK === undefined ? undefined : await connect();
const lines = await trainedLedger(
  options,
  communicator &&
    ((model) => {
      const parallel = new DataParallel(model, communicator);
      return { rank: communicator.rank, sync: () => parallel.sync() };
    }),
);
if ((communicator?.rank ?? 0) === 0) {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  if (out === undefined) process.stdout.write(text);
  else writeFileSync(out, text);
  if (!device.portable) console.error(`${device.name} is not portable here: other devices may round differently.`);
}
await communicator?.close();
