/** A page that fine-tunes a GPT-2 file on a text and gives the adapter and the merged model back as files. Nothing leaves the browser. */
import "@opt/kernels-wasm";
import { checkpointBlob, loadCheckpoint } from "@opt/checkpoint";
import { init, OptError } from "@opt/core";
import { encode } from "./src/base";
import { FineTuning, loadGpt2 } from "./src/fine-tuning";

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const report = element<HTMLOutputElement>("report");

function offer(id: string, blob: Blob): void {
  const link = element<HTMLAnchorElement>(id);
  URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(blob);
  link.hidden = false;
}

async function fineTune(): Promise<void> {
  const [file] = element<HTMLInputElement>("base").files!;
  const steps = Number(element<HTMLInputElement>("steps").value);
  const progress = element<HTMLProgressElement>("progress");
  const device = await init();
  const { tensors } = await loadCheckpoint(file!);
  const model = loadGpt2(tensors, Number(element<HTMLInputElement>("heads").value), device);
  for (const tensor of Object.values(tensors)) tensor.dispose();
  const run = new FineTuning(model, { tokens: encode(element<HTMLTextAreaElement>("text").value) });
  const before = await run.evaluate();
  progress.max = steps;
  await run.train(steps, async (step) => {
    progress.value = step;
    await new Promise((resolve) => setTimeout(resolve)); // the page draws
  });
  const after = await run.evaluate();
  offer("adapter", await checkpointBlob(run.adapter()));
  const merged = run.merge();
  offer("merged", await checkpointBlob({ step: steps, tensors: merged }));
  for (const tensor of [...Object.values(merged), ...Object.values(model.stateDict())]) tensor.dispose();
  report.value = `${device.name}: loss on unseen text ${before.toFixed(4)} before, ${after.toFixed(4)} after`;
}

element("start").addEventListener("click", async () => {
  report.value = "";
  await fineTune().catch((error) => {
    report.value = error instanceof OptError ? error.message : String(error);
  });
});
