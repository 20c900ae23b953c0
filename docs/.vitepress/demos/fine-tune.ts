/** Fine-tunes a small GPT-2, which has learned the sonnets, on the page's text. */
import "@opt/kernels-wasm";
import { checkpointBlob, loadCheckpoint } from "@opt/checkpoint";
import { Generator, init } from "@opt/core";
import { type ExposedRun, expose } from "@opt/train/worker";
import { decode, encode, FineTuning, loadGpt2 } from "@opt-e2e/fine-tune";
import base from "@opt-e2e/fine-tune/base.safetensors";
import { sample } from "@opt-e2e/tiny-gpt/sample";
import { ADAPTERS, type Begun, type Ended, type FineTuneAsk, HEADS, STEPS } from "./fine-tune-messages";

const WRITING = { generator: new Generator(2), temperature: 0.5 };
const LETTERS = 200;

let run: FineTuning;

expose((exposed: ExposedRun, ask: FineTuneAsk) => {
  if (ask.kind === "begin") return begin(ask.text);
  return ask.kind === "train" ? train(exposed) : write();
});

async function begin(text: string): Promise<Begun> {
  const device = await init("wasm");
  const { tensors } = await loadCheckpoint(new Blob([base as Uint8Array<ArrayBuffer>]), { dtype: "f32" });
  const model = loadGpt2(tensors, HEADS, device);
  for (const tensor of Object.values(tensors)) tensor.dispose();
  const sizeOf = (trainable: boolean) => model.parameters({ trainable }).reduce((sum, { size }) => sum + size, 0);
  run = new FineTuning(model, { tokens: encode(text), ...ADAPTERS });
  return { all: sizeOf(false), trained: sizeOf(true), unseen: await run.evaluate(), written: await write() };
}

async function train({ report, signal }: ExposedRun): Promise<Ended> {
  await run.train(STEPS, [report()], signal);
  const unseen = await run.evaluate();
  const adapter = await checkpointBlob(run.adapter());
  return { unseen, adapter, merged: await checkpointBlob({ step: run.step, tensors: run.merge() }) };
}

async function write(): Promise<string> {
  return decode(await sample(run.model, encode("\n"), LETTERS, WRITING)).trim();
}
