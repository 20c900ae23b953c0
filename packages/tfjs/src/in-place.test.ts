// Stepping variables where they lie changes nothing else that a model has: layers of many kinds, bit for bit.
import "@opt/kernels-cpu";
import { type Device, init } from "@opt/core";
import { NAdam } from "@opt/nadam";
import * as tf from "@tensorflow/tfjs-core";
import { layers, sequential } from "@tensorflow/tfjs-layers";
import { afterEach, expect, it } from "vitest";
import { useBackend } from "../testing/backends";
import { TfOptimizer } from "./tf-optimizer";

const [js, cpu] = [await init("js"), await init("cpu")];
afterEach(() => tf.disposeVariables());

async function trained(backend: "cpu" | "keeper", device: Device, inPlace: boolean) {
  await useBackend(backend);
  const model = sequential({
    layers: [
      layers.embedding({ inputDim: 20, outputDim: 6, inputLength: 6 }),
      layers.lstm({ units: 5, returnSequences: true, recurrentInitializer: "glorotUniform" }),
      layers.batchNormalization(),
      layers.conv1d({ filters: 4, kernelSize: 2, activation: "relu" }),
      layers.flatten(),
      layers.dense({ units: 5, activation: "softmax" }),
    ],
  });
  model.setWeights(
    model.getWeights().map((w, i) => (w.rank > 1 ? tf.randomNormal(w.shape, 0, 0.3, "float32", i + 1) : tf.clone(w))),
  );
  model.compile({
    optimizer: new TfOptimizer(NAdam, { lr: 0.02 }, { device, inPlace }),
    loss: "categoricalCrossentropy",
    metrics: ["accuracy"],
  });
  const x = tf.tensor2d(
    Array.from({ length: 96 }, (_, i) => (i * 7919) % 20),
    [16, 6],
  );
  const y = tf.oneHot(tf.tensor1d(Int32Array.from({ length: 16 }, (_, i) => i % 5)), 5);
  const options = { epochs: 2, batchSize: 8, shuffle: false, verbose: 0 } as const;
  const { history } = await model.fit(x, y, { ...options, validationData: [x, y] });
  const { numTensors } = tf.memory();
  await model.fit(x, y, { ...options, validationData: [x, y] });
  expect(tf.memory().numTensors).toBe(numTensors);
  return { history, weights: model.getWeights().map((w) => [...w.dataSync()]) };
}

it("an embedding, an LSTM, batch normalization, a convolution, validation", async () => {
  const expected = await trained("cpu", js, false);
  expect(expected.history.val_loss!.at(-1)).toBeLessThan(1.6);
  expect(await trained("cpu", cpu, true)).toEqual(expected);
  expect(await trained("keeper", cpu, true)).toEqual(expected);
});
