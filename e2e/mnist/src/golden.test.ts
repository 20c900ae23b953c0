import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { init, listDevices, tensor } from "@opt/core";
import { DataLoader } from "@opt/data";
import { sample, trainingGolden, triesAll, useSoftwareVulkan } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { loadMnist } from "./data";
import { digitNetwork } from "./model";
import { type OptimizerName, optimizerNames, optimizers } from "./optimizers";
import { trainingStep } from "./step";

const golden = trainingGolden("mnist-mlp");
const { training } = loadMnist();

/** The loss of the first steps, with PyTorch's first weights and the images in file order. */
async function train(name: OptimizerName, steps: number): Promise<number[]> {
  const model = digitNetwork(32);
  model.loadStateDict(
    Object.fromEntries([...golden.parameters].map(([key, { data, shape }]) => [key, tensor(data, { shape })])),
  );
  const optimizer = optimizers[name](model.namedParameters());
  const step = trainingStep(model, optimizer);
  const losses: number[] = [];
  for (const batch of new DataLoader(training, { batchSize: golden.batch })) {
    if (losses.length === steps) break;
    const loss = step(batch);
    losses.push(await loss.item());
    loss.dispose();
  }
  return losses;
}

/** What the device keeps of every loss: WebGPU lets devices round as they like. */
const RELATIVE: Readonly<Record<string, number>> = { js: 1e-5, wasm: 1e-5, cpu: 1e-5, webgpu: 1e-4 };

useSoftwareVulkan();
const devices = (await listDevices()).filter(({ name }) => name in RELATIVE);

describe.each(devices)("784-32-10 on $name", ({ name, available, reason }) => {
  // js and WebGPU in software take seconds for each.
  const isSlow = name === "js" || name === "webgpu";
  it.for(isSlow ? sample(optimizerNames) : optimizerNames)(
    "%s: every loss is PyTorch's",
    async (optimizer, { skip }) => {
      if (!available) skip(reason);
      await init(name);
      const expected = golden.losses[optimizer].slice(0, isSlow && !triesAll ? 15 : undefined);
      expect(await train(optimizer, expected.length)).toAgreeWith(expected, { absolute: 0, relative: RELATIVE[name]! });
    },
  );
});
