// A tf.Optimizer whose numbers are those of our own optimizers, bit for bit: each algorithm, each device, each kind of backend.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { type Device, Generator, init, parameter, randn } from "@opt/core";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import * as tf from "@tensorflow/tfjs-core";
import { afterEach, expect, it } from "vitest";
import { BACKENDS, useBackend } from "../testing/backends";
import { type AnyOptimizer, OPTIMIZERS } from "../testing/optimizers";
import { TfOptimizer } from "./tf-optimizer";

const devices = await Promise.all(["js", "wasm", "cpu"].map((name) => init(name)));
afterEach(() => tf.disposeVariables());

const SHAPES = [[7, 9], [9], []];

/** Variables and parameters of ours, both after the same gradients. */
function compare(optimizer: AnyOptimizer, options: object, device: Device, shapes = SHAPES, steps = 4): void {
  const generator = new Generator(3);
  const draw = (shape: number[]) => randn(shape, { generator, device: "js" }).dataSync<Float32Array>();
  const params = shapes.map((shape) => parameter(draw(shape), { shape, device: "js" }));
  const variables = params.map((param) =>
    tf.tidy(() => tf.variable(tf.tensor(param.dataSync<Float32Array>(), [...param.shape]))),
  );
  const own = new optimizer(params, options);
  const theirs = new TfOptimizer(optimizer, options, { device });
  for (let step = 0; step < steps; step++) {
    for (const param of params) param.grad = randn(param.shape, { generator, device: "js" });
    own.step();
    const gradients = params.map(({ grad }, i) => [
      variables[i]!.name,
      tf.tensor(grad!.dataSync<Float32Array>(), variables[i]!.shape),
    ]);
    theirs.applyGradients(Object.fromEntries(gradients));
  }
  params.forEach((param, i) => {
    expect(variables[i]!.dataSync()).toEqual(param.dataSync());
  });
  expect(theirs.iterations).toBe(steps);
}

it.each(OPTIMIZERS)("%s", async (_, optimizer, options) => {
  await useBackend("cpu");
  for (const device of devices) compare(optimizer, options, device);
});

it.each(BACKENDS)("on TF.js' backend %s", async (backend) => {
  await useBackend(backend);
  for (const device of devices) compare(NAdam, { lr: 0.05, weightDecay: 0.1 }, device);
});

it("maximize, as the class", async () => {
  await useBackend("cpu");
  compare(NAdam, { lr: 0.05, maximize: true }, devices[0]!);
  const w = tf.variable(tf.tensor([1]));
  new TfOptimizer(NAdam, { lr: 0.05, maximize: true }).applyGradients({ [w.name]: tf.tensor([1]) });
  expect(w.dataSync()[0]).toBeGreaterThan(1);
});

it("Muon, of matrices", async () => {
  await useBackend("cpu");
  compare(Muon, { lr: 0.02 }, devices[0]!, [
    [7, 9],
    [9, 3],
  ]);
});

it("is a tf.Optimizer", () => {
  const optimizer = new TfOptimizer(NAdam);
  expect(optimizer).toBeInstanceOf(tf.Optimizer);
  expect([optimizer.getClassName(), optimizer.iterations]).toEqual(["TfOptimizer", 0]);
});
