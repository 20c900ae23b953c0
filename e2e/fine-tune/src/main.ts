/**
 * Fine-tunes a language model with adapters of low rank: reads the base, trains two small matrices beside each attention layer on another
 * text, evaluates before and after, saves the adapter as PEFT does, merges it, and writes the whole as transformers does.
 */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { init, OptError } from "@opt/core";
import { merge, saveAdapter, savePretrained } from "@opt/models";
import { progress } from "@opt/train";
import { Command, InvalidArgumentError } from "commander";
import { FineTuning, type FineTuningOptions } from "./fine-tuning";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

type Options = Pick<FineTuningOptions, "base" | "epochs" | "rank" | "alpha" | "batch" | "length" | "quantize"> & {
  readonly device?: string;
  readonly text: string;
  readonly out: string;
};

async function main({ device: name, text, out, ...options }: Options): Promise<void> {
  const device = await init(name);
  const folder = join(out, "steps");
  const run = await FineTuning.open({ ...options, text: await readFile(text, "utf8"), folder });
  const { model, plan } = run;
  const sizeOf = (trainable: boolean) => model.parameters({ trainable }).reduce((sum, { size }) => sum + size, 0);
  console.log(`${sizeOf(true)} of ${sizeOf(false)} numbers train on ${device.name}; a step takes ${plan.bytes} bytes`);
  console.log(`unseen text before: loss ${(await run.evaluate()).toFixed(4)}\n${await run.write()}\n`);
  await run.train([progress()]);
  console.log(`unseen text after: loss ${(await run.evaluate()).toFixed(4)}\n${await run.write()}\n`);

  const adapter = join(out, "adapter");
  await saveAdapter(model, adapter, { overwrite: true, base: options.base });
  console.log(`${adapter}: the adapter, for PEFT`);
  if (options.quantize !== undefined) return;
  const merged = join(out, "merged");
  await savePretrained(merge(model), merged, { overwrite: true });
  console.log(`${merged}: the model, for transformers`);
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("It must be an integer >= 1.");
  return value;
}

const program = new Command("fine-tune")
  .description("Fine-tunes a language model by adapters of low rank (LoRA), and merges them.")
  .option("--device <name>", "js, wasm or cpu; by default the best one that opens")
  .option(
    "--base <folder>",
    "of a model, or hf://owner/name; default: one of sonnets",
    join(ROOT, "e2e/fine-tune/base"),
  )
  .option("--text <file>", "to learn; default: the project's licence", join(ROOT, "LICENSE"))
  .option("--epochs <count>", "of the whole run", count)
  .option("--batch <count>", "samples of a step", count)
  .option("--length <count>", "tokens of a sample", count)
  .option("--rank <count>", "of the adapters", count)
  .option("--alpha <number>", "adapters count alpha / rank times", count)
  .option("--quantize <format>", "q8 or nf4: keeps the base in 8 or 4 bits")
  .option("--out <folder>", "for what is saved", join(ROOT, "runs/fine-tune"))
  .parse();

try {
  await main(program.opts());
} catch (error) {
  if (!(error instanceof OptError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
