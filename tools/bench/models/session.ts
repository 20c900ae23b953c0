/**
 * The program of models.ts: trains or asks a language model on one device. Speaks as process-session.ts expects.
 *
 *     session.ts <device> eager|compiled
 */
import { createInterface } from "node:readline";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { compile, init, type Tensor, tidy } from "@opt/core";
import { timed } from "../contender";
import { batch, decode, lossOf, model, type Work } from "./work";

const BATCHES = 4;
const [deviceName, way] = process.argv.slice(2) as [string, string];
const isCompiled = way === "compiled";
const values: number[] = [];
let step: () => Promise<void>;

async function open(kind: Work): Promise<object> {
  await init(deviceName);
  const llama = model();
  step = kind === "train" ? training(llama) : async () => void values.push(...(await decode(llama, isCompiled)));
  return {};
}

function training(llama: ReturnType<typeof model>): () => Promise<void> {
  const optimizer = new AdamW(llama.namedParameters(), { lr: 1e-3 });
  const batches = Array.from({ length: BATCHES }, (_, index) => batch(index));
  const train = (tokens: Tensor) => {
    const loss = lossOf(llama, tokens);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const next = isCompiled ? compile(train) : (tokens: Tensor) => tidy(() => train(tokens));
  return async () => {
    const loss = next(batches[values.length % BATCHES]!);
    values.push(await loss.item());
    loss.dispose();
  };
}

async function answerTo({ command, kind, steps, count }: { [name: string]: unknown }): Promise<object> {
  if (command === "open") return open(kind as Work);
  if (command === "run") return { milliseconds: await timed(steps as number, step) };
  return { values: values.slice(0, count as number) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await answerTo(JSON.parse(line)).catch((error: Error) => ({ error: error.message }));
  console.log(JSON.stringify(answer));
}
process.exit(0); // a pool's threads would keep the process alive
