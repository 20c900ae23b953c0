/**
 * Fine-tunes a GPT-2 with adapters of low rank: loads the base, trains two small matrices per layer on another text, evaluates before and
 * after, saves the adapter as PEFT does, merges it, saves the whole as Hugging Face does, and reads that back.
 */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkpointBlob, loadCheckpoint } from "@opt/checkpoint";
import { type Device, init, OptError } from "@opt/core";
import type { StateDict } from "@opt/nn";
import type { Callback } from "@opt/train";
import { sonnets } from "@opt-e2e/tiny-gpt/text";
import { Command, InvalidArgumentError } from "commander";
import { encode, trainBase } from "./base";
import { adapterConfig, FineTuning, loadGpt2, lossOn } from "./fine-tuning";
import { toGpt2 } from "./gpt2-names";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const HEADS = 4;
const LENGTH = 48;

interface Options {
  device?: string;
  text?: string;
  base?: string;
  heads: number;
  steps: number;
  baseSteps: number;
  rank: number;
  alpha: number;
  out: string;
}

/** A safetensors file of named tensors. */
async function saveModel(file: string, tensors: StateDict): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const blob = await checkpointBlob({ step: 0, tensors });
  await writeFile(file, new Uint8Array(await blob.arrayBuffer()));
  for (const tensor of Object.values(tensors)) tensor.dispose();
}

/** Prints the loss of each `every`-th step, and of the last. */
const told = (every: number, last: number): Callback => ({
  onStepEnd({ step, loss }) {
    if (step % every === 0 || step === last) console.log(`  step ${step}: loss ${loss.toFixed(3)}`);
  },
});

/** Trains a base on the sonnets, once. */
async function ownBase(file: string, device: Device, steps: number): Promise<void> {
  if (existsSync(file)) return;
  console.log(`base: ${steps} steps on Shakespeare's sonnets`);
  const sizes = { width: 64, length: LENGTH, blocks: 2, heads: HEADS, seed: 1 };
  const model = await trainBase({ device, tokens: encode(sonnets()), steps, ...sizes }, [told(100, steps)]);
  await saveModel(file, toGpt2(model.stateDict()));
  await writeFile(join(dirname(file), "config.json"), `${JSON.stringify({ model_type: "gpt2", n_head: HEADS })}\n`);
  for (const parameter of model.parameters()) parameter.dispose();
}

async function main({ device: name, text, base, heads, steps, baseSteps, rank, alpha, out }: Options): Promise<void> {
  const device = await init(name);
  const file = base ?? join(out, "base/model.safetensors");
  if (base === undefined) await ownBase(file, device, baseSteps);

  const model = loadGpt2((await loadCheckpoint(file)).tensors, heads, device);
  const all = model.parameters().reduce((sum, { size }) => sum + size, 0);
  const tokens = encode(await readFile(text ?? join(ROOT, "LICENSE"), "utf8"));
  const run = new FineTuning(model, { tokens, length: Math.min(LENGTH, model.length), rank, alpha });
  const own = model.parameters({ trainable: true }).reduce((sum, { size }) => sum + size, 0);
  console.log(`adapters: ${own} of ${all} parameters (${((100 * own) / all).toFixed(1)} %) on ${device.name}`);
  console.log(`unseen text before: loss ${(await run.evaluate()).toFixed(4)}`);
  await run.train(steps, [told(50, steps)]);
  const after = await run.evaluate();
  console.log(`unseen text after:  loss ${after.toFixed(4)}`);

  const adapter = await checkpointBlob(run.adapter());
  await mkdir(join(out, "adapter"), { recursive: true });
  await writeFile(join(out, "adapter/adapter_model.safetensors"), new Uint8Array(await adapter.arrayBuffer()));
  await writeFile(join(out, "adapter/adapter_config.json"), `${JSON.stringify(adapterConfig(file, rank, alpha))}\n`);
  const merged = join(out, "merged/model.safetensors");
  await saveModel(merged, run.merge());

  const again = loadGpt2((await loadCheckpoint(merged)).tensors, heads, device);
  const held = tokens.subarray(Math.floor(tokens.length * 0.9));
  const loss = await lossOn(again, held, Math.min(LENGTH, again.length), 8);
  console.log(`merged, saved, read back: loss ${loss.toFixed(4)}`);
  console.log(
    `\n${join(out, "adapter")}: the adapter, as PEFT saves it\n${merged}: the model, as transformers saves it`,
  );
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("It must be an integer >= 1.");
  return value;
}

const program = new Command("fine-tune")
  .description("Fine-tunes a GPT-2 by adapters of low rank (LoRA), character by character, and merges them.")
  .option("--device <name>", "js, wasm or cpu; by default the best one that opens")
  .option("--base <file>", "model.safetensors of a GPT-2 whose tokens are characters' codes; default: one trained here")
  .option("--heads <count>", "of the base", count, HEADS)
  .option("--text <file>", "to learn; default: the project's licence")
  .option("--steps <count>", "of fine-tuning", count, 300)
  .option("--base-steps <count>", "of the base that is trained here", count, 400)
  .option("--rank <count>", "of the adapters", count, 4)
  .option("--alpha <number>", "adapters count alpha / rank times", count, 8)
  .option("--out <folder>", "for what is saved", join(ROOT, "runs/fine-tune"))
  .parse();

try {
  await main(program.opts());
} catch (error) {
  if (!(error instanceof OptError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
