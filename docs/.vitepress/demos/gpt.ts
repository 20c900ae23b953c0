/** Trains a small GPT on Shakespeare's sonnets, and lets it write when the page asks. */
import "@opt/kernels-wasm";
import { Generator, init } from "@opt/core";
import { type ExposedRun, expose } from "@opt/train/worker";
import { sample } from "@opt-e2e/tiny-gpt/sample";
import { sonnets } from "@opt-e2e/tiny-gpt/text";
import { Training } from "@opt-e2e/tiny-gpt/training";

const SIZE = { width: 64, length: 48, blocks: 2, heads: 4, batch: 16 };
const RUN = { dtype: "f32", steps: 2000, decay: 0.98, seed: 1, compiled: true } as const;
const LETTERS = 160;

let training: Training | undefined;
const drawn = new Generator(2);

expose(async (run: ExposedRun, ask: "train" | "write") => {
  if (ask === "write") return write(training!);
  const device = await init("wasm");
  training = new Training({ ...SIZE, ...RUN, text: sonnets(), device });
  await training.train([run.report()]);
  return undefined;
});

async function write({ model, alphabet }: Training): Promise<string> {
  return alphabet.decode(await sample(model, alphabet.encode("\n"), LETTERS, { generator: drawn })).trim();
}
