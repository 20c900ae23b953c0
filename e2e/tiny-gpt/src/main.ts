/** Trains a small GPT on Shakespeare's sonnets, character by character, and lets it write. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { spawnSync } from "node:child_process";
import { init, OptError } from "@opt/core";
import type { Callback } from "@opt/train";
import { Command, InvalidArgumentError, Option } from "commander";
import { commandOf, type RanksResult } from "./ranks";
import { sample } from "./sample";
import { sonnets } from "./text";
import { Training } from "./training";

const LENGTH = 48;
const BATCH = 16;
/** Characters that the model writes in the end. */
const WRITTEN = 400;

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("It must be an integer >= 1.");
  return value;
}

interface Options {
  device?: string;
  dtype: "bf16" | "f16" | "f32";
  steps: number;
  seed: number;
  ranks: number;
}

/** On several ranks it trains in float32. */
function onRanks({ device = "wasm", steps, seed, ranks }: Options): void {
  const options = { optimizer: "AdamW", steps, width: 64, length: LENGTH, batch: BATCH, seed } as const;
  const { status, stdout } = spawnSync(process.execPath, commandOf(ranks, device, options), {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new OptError("IO", "tiny-gpt", "a rank has ended.", "See what it wrote.");
  for (const [rank, { losses }] of (JSON.parse(stdout) as RanksResult[]).entries())
    console.log(`rank ${rank}: loss ${losses[0].toFixed(3)} at first, ${losses[1].toFixed(3)} after ${steps} steps`);
}

async function main(options: Options): Promise<void> {
  if (options.ranks > 1) return onRanks(options);
  return alone(options);
}

async function alone({ device: name, dtype, steps, seed }: Options): Promise<void> {
  const device = await init(name);
  const size = { width: 64, length: LENGTH, blocks: 2, heads: 4, batch: BATCH };
  const training = new Training({
    ...size,
    text: sonnets(),
    device,
    dtype,
    steps,
    decay: 0.98,
    seed,
    compiled: true,
  });
  const { model, alphabet, generator } = training;
  const parameters = model.parameters().reduce((sum, { size }) => sum + size, 0);
  console.log(`${alphabet.length} different characters; ${parameters} parameters in ${dtype}; ${device.name}`);

  const start = performance.now();
  const tell: Callback = {
    async onStepEnd({ step, loss }) {
      if (step !== 1 && step % 50 !== 0 && step !== steps) return;
      const unseen = await training.evaluate();
      const seconds = (performance.now() - start) / 1000;
      console.log(
        `step ${step}: loss ${loss.toFixed(3)}, averaged on unseen sonnets ${unseen.toFixed(3)}, ${seconds.toFixed(1)} s`,
      );
    },
  };
  await training.train([tell]);
  const written = await training.averages.averaged(() => sample(model, alphabet.encode("\n"), WRITTEN, { generator }));
  console.log(`\n${alphabet.decode(written).trim()}\n`);
  training.dispose();
}

const program = new Command("tiny-gpt")
  .description("Trains a small GPT on Shakespeare's sonnets, character by character, and lets it write.")
  .option("--device <name>", "js, wasm or cpu; by default the best one that opens")
  .addOption(new Option("--dtype <name>", "of the weights").choices(["bf16", "f16", "f32"]).default("bf16"))
  .option("--steps <count>", `training steps of ${BATCH} sequences of ${LENGTH} characters`, count, 500)
  .option("--seed <number>", "of the first weights, the batches and the text", count, 1)
  .option("--ranks <count>", "processes that share each step's sequences, in f32", count, 1)
  .parse();

try {
  await main(program.opts());
} catch (error) {
  if (!(error instanceof OptError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
