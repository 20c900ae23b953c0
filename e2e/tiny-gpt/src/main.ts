/** Trains a small GPT on Shakespeare's sonnets, character by character, and lets it write. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { clipGradNorm, Generator, init, noGrad, OptError, tensor, tidy } from "@opt/core";
import { OneCycleLR } from "@opt/core/schedules";
import { Alphabet } from "@opt/data";
import { crossEntropy } from "@opt/nn";
import { Command, InvalidArgumentError } from "commander";
import { Gpt } from "./model";
import { sample } from "./sample";
import { sonnets } from "./text";

const LENGTH = 48;
const BATCH = 16;

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("It must be an integer >= 1.");
  return value;
}

/** Sequences that begin at random places, and for each position the character after it. */
function batchOf(tokens: Int32Array, generator: Generator): { input: Int32Array; target: Int32Array } {
  const input = new Int32Array(BATCH * LENGTH);
  const target = new Int32Array(BATCH * LENGTH);
  for (let row = 0; row < BATCH; row++) {
    const start = Math.floor(generator.nextFloat() * (tokens.length - LENGTH));
    input.set(tokens.subarray(start, start + LENGTH), row * LENGTH);
    target.set(tokens.subarray(start + 1, start + LENGTH + 1), row * LENGTH);
  }
  return { input, target };
}

async function main({ device: name, steps, seed }: { device?: string; steps: number; seed: number }): Promise<void> {
  const device = await init(name);
  const text = sonnets();
  const alphabet = new Alphabet(text);
  const tokens = alphabet.encode(text);
  const held = Math.floor(tokens.length * 0.9);
  const generator = new Generator(seed);
  const model = new Gpt({
    tokens: alphabet.characters.length,
    width: 64,
    length: LENGTH,
    blocks: 2,
    heads: 4,
    generator,
  });
  const optimizer = new AdamW(model.namedParameters(), { lr: 3e-3, weightDecay: 0.1 });
  const schedule = new OneCycleLR(optimizer, { maxLr: 6e-3, totalSteps: steps });
  const lossOn = (part: Int32Array) => {
    const { input, target } = batchOf(part, generator);
    return crossEntropy(model.forward(tensor(input, { shape: [BATCH, LENGTH] })), target);
  };
  const parameters = [...model.parameters()].reduce((sum, { size }) => sum + size, 0);
  console.log(
    `${tokens.length} characters, ${alphabet.characters.length} different; ${parameters} parameters; ${device.name}`,
  );

  const start = performance.now();
  for (let step = 1; step <= steps; step++) {
    const report = step === 1 || step % 50 === 0 || step === steps;
    const loss = tidy(() => {
      const loss = lossOn(tokens.subarray(0, held));
      loss.backward();
      clipGradNorm(model.parameters(), 1);
      optimizer.step();
      optimizer.zeroGrad();
      return report ? loss : undefined;
    });
    if (step < steps) schedule.step();
    if (loss !== undefined) {
      const unseen = tidy(() => noGrad(() => lossOn(tokens.subarray(held))));
      const [mine, theirs] = [await loss.item(), await unseen.item()];
      const seconds = (performance.now() - start) / 1000;
      console.log(
        `step ${step}: loss ${mine.toFixed(3)}, on unseen sonnets ${theirs.toFixed(3)}, ${seconds.toFixed(1)} s`,
      );
      loss.dispose();
      unseen.dispose();
    }
  }
  const written = await sample(model, alphabet.encode("\n"), 400, { generator });
  console.log(`\n${alphabet.decode(written).trim()}\n`);
}

const program = new Command("tiny-gpt")
  .description("Trains a small GPT on Shakespeare's sonnets, character by character, and lets it write.")
  .option("--device <name>", "js or wasm; by default the best one that opens")
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
