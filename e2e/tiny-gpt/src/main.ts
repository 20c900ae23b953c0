/** Trains a small GPT on Shakespeare's sonnets, character by character, and lets it write. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { init, OptError } from "@opt/core";
import { Command, InvalidArgumentError, Option } from "commander";
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
}

async function main({ device: name, dtype, steps, seed }: Options): Promise<void> {
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
    recorded: device.backend.readSync !== undefined, // elsewhere the scaler has to be awaited
  });
  const { model, alphabet, generator } = training;
  const parameters = model.parameters().reduce((sum, { size }) => sum + size, 0);
  console.log(`${alphabet.length} different characters; ${parameters} parameters in ${dtype}; ${device.name}`);

  const start = performance.now();
  await training.train(steps, async (loss) => {
    const { step } = training;
    if (step !== 1 && step % 50 !== 0 && step !== steps) return;
    const [mine, theirs] = [await loss.item(), await training.evaluate()];
    const seconds = (performance.now() - start) / 1000;
    console.log(
      `step ${step}: loss ${mine.toFixed(3)}, averaged on unseen sonnets ${theirs.toFixed(3)}, ${seconds.toFixed(1)} s`,
    );
  });
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
  .parse();

try {
  await main(program.opts());
} catch (error) {
  if (!(error instanceof OptError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
