/** Fine-tunes a language model on the page's text: the shipped one, which has learned the sonnets, or one of the user's. */
import "@opt/kernels-wasm";
import { blobFileSystem, opfsFileSystem } from "@opt/checkpoint";
import { init } from "@opt/core";
import type { Callback } from "@opt/train";
import { type ExposedRun, expose } from "@opt/train/worker";
import { FineTuning } from "@opt-e2e/fine-tune";
import config from "@opt-e2e/fine-tune/base.json";
import weights from "@opt-e2e/fine-tune/base.safetensors";
import { type Begun, type Ended, type FineTuneAsk, FOLDER, type Kept } from "./fine-tune-messages";

/** What WebAssembly may have. */
const MEMORY = 4 * 2 ** 30;
const [BASE, STEPS, RUN] = ["base", "steps", "run.json"].map((name) => `${FOLDER}/${name}`) as [string, string, string];

const shipped = blobFileSystem({
  [`${BASE}/config.json`]: new Blob([JSON.stringify(config)]),
  [`${BASE}/model.safetensors`]: new Blob([weights as Uint8Array<ArrayBuffer>]),
});
const own = opfsFileSystem();
let run: FineTuning;
let kept: Kept;
/** Of all steps so far, also those of a page that is gone. */
let losses: readonly number[] = [];

expose(async (exposed: ExposedRun, ask: FineTuneAsk) => {
  switch (ask.kind) {
    case "begin":
      await alone();
      return begin(ask.text, ask.files);
    case "goOn":
      await alone();
      return open(ask.kept);
    case "train":
      return train(exposed);
    case "losses":
      return losses;
    case "pause":
      run.pause(ask.isPaused);
      return keep({ ...kept, isPaused: ask.isPaused });
    case "write":
      return run.write();
  }
});

/** One page at a time trains the run that is kept: this one waits for the others. */
function alone(): Promise<void> {
  return new Promise((resolve) => {
    void navigator.locks.request(FOLDER, () => {
      resolve();
      return new Promise(() => {});
    });
  });
}

async function begin(text: string, files: readonly File[]): Promise<Begun> {
  await own.remove(FOLDER);
  for (const file of files) await copy(file, `${BASE}/${file.name}`);
  const [first] = files;
  return open({ text, base: first?.webkitRelativePath.split("/")[0] ?? null, isPaused: false });
}

async function open(given: Kept): Promise<Begun> {
  await init("wasm");
  const baseFiles = given.base === null ? shipped : own;
  run = await FineTuning.open({ base: BASE, baseFiles, text: given.text, folder: STEPS, files: own, memory: MEMORY });
  await keep(given);
  const { model, plan } = run;
  const sizeOf = (trainable: boolean) => model.parameters({ trainable }).reduce((sum, { size }) => sum + size, 0);
  const unseen = await run.evaluate();
  return { all: sizeOf(false), trained: sizeOf(true), plan, unseen, written: await run.write() };
}

async function train({ report }: ExposedRun): Promise<Ended> {
  const remember: Callback = {
    onTrainBegin({ history }) {
      losses = history.losses;
    },
  };
  if (kept.isPaused) run.pause(true);
  await run.train([remember, report()]);
  return { unseen: await run.evaluate(), files: await run.adapter() };
}

async function keep(given: Kept): Promise<void> {
  kept = given;
  await copy(new Blob([JSON.stringify(kept)]), RUN);
}

async function copy(blob: Blob, path: string): Promise<void> {
  await own.makeFolder(path.slice(0, path.lastIndexOf("/")));
  const file = await own.open(path, "create", blob.size);
  try {
    let at = 0;
    for await (const part of blob.stream()) {
      await file.write(part, at);
      at += part.length;
    }
    await file.finish();
  } finally {
    await file.close();
  }
}
