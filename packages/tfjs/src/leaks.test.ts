// What hundreds of steps leave behind: nothing, in TF.js or on our device.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { enableQ8, init } from "@opt/core";
import { expectCode, triesAll } from "@opt/testkit";
import * as tf from "@tensorflow/tfjs-core";
import { expect, it } from "vitest";
import { useBackend } from "../testing/backends";
import { squares } from "../testing/single";
import { TfOptimizer } from "./tf-optimizer";

enableQ8();

it.each([
  ["cpu", await init("cpu")],
  ["wasm", await init("wasm")],
  ["keeper", await init("js")],
] as const)("nothing: TF.js on %s, ours on %s", async (host, device) => {
  await useBackend(host);
  const before = [tf.memory().numTensors, device.memory()];
  const [w, b] = tf.tidy(() => [tf.variable(tf.ones([20])), tf.variable(tf.scalar(1))]) as tf.Variable[];
  const optimizer = new TfOptimizer(AdamW, { lr: 0.01, amsgrad: true }, { device });
  const step = () => optimizer.minimize(() => tf.add(squares(w!), squares(b!)), false, [w!, b!]);
  step();
  const { numTensors, numBytes, numDataBuffers } = tf.memory();
  const ours = device.memory();
  for (let i = 0; i < (triesAll ? 1000 : 150); i++) step();
  expect(tf.memory()).toMatchObject({ numTensors, numBytes, numDataBuffers });
  expect(device.memory()).toEqual(ours);
  for (let i = 0; i < 3; i++) await optimizer.getWeights();
  optimizer.dispose();
  tf.dispose([w!, b!]);
  expect([tf.memory().numTensors, device.memory()]).toEqual(before);
});

it("nothing of a step that is rejected", async () => {
  await useBackend("cpu");
  const w = tf.tidy(() => tf.variable(tf.ones([3])));
  const optimizer = new TfOptimizer(AdamW);
  optimizer.learningRate = Number.NaN;
  const { numTensors } = tf.memory();
  expectCode("BAD_ARGUMENT", () => optimizer.minimize(() => squares(w), false, [w]));
  expect(tf.memory().numTensors).toBe(numTensors);
});

it("nothing of packed state that was unpacked to be saved, or for variables that come later", async () => {
  await useBackend("cpu");
  const device = await init("js");
  const [w, b] = tf.tidy(() => [tf.variable(tf.ones([5000])), tf.variable(tf.ones([5000]))]) as tf.Variable[];
  const optimizer = new TfOptimizer(AdamW, { stateDType: "q8" }, { device });
  const before = device.memory().tensors;
  optimizer.minimize(() => squares(w!), false, [w!]);
  const each = device.memory().tensors - before;
  optimizer.minimize(() => squares(b!), false, [b!]);
  await optimizer.getWeights();
  expect(device.memory().tensors - before).toBe(2 * each);
});
