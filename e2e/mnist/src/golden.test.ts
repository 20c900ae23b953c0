import "@opt/kernels-wasm";
import { init, listDevices, tensor, tidy } from "@opt/core";
import { crossEntropy } from "@opt/nn";
import { trainingGolden } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { batchOf, range } from "./batch";
import { loadMnist } from "./data";
import { digitNetwork } from "./model";
import { type OptimizerName, optimizerNames, optimizers } from "./optimizers";

const golden = trainingGolden("mnist-mlp");
const { training } = loadMnist();

/** The loss of every step, with PyTorch's first weights and the images in file order. */
async function train(name: OptimizerName): Promise<number[]> {
  const model = digitNetwork(32);
  model.loadStateDict(
    Object.fromEntries([...golden.parameters].map(([key, { data, shape }]) => [key, tensor(data, { shape })])),
  );
  const optimizer = optimizers[name](model.namedParameters());
  const losses: number[] = [];
  for (let step = 0; step < golden.losses[name].length; step++) {
    const loss = tidy(() => {
      const { images, labels } = batchOf(training, range(step * golden.batch, (step + 1) * golden.batch));
      const loss = crossEntropy(model.forward(images), labels);
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      return loss;
    });
    losses.push(await loss.item());
    loss.dispose();
  }
  return losses;
}

const devices = (await listDevices()).filter(({ name }) => ["js", "wasm"].includes(name));

describe.each(devices)("784-32-10 on $name", ({ name, available, reason }) => {
  it.for(optimizerNames)("%s: every loss is PyTorch's", async (optimizer, { skip }) => {
    if (!available) skip(reason);
    await init(name);
    expect(await train(optimizer)).toAgreeWith(golden.losses[optimizer], { absolute: 0, relative: 1e-5 });
  });
});
