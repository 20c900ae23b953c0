// A digit classifier written in jax-js trains as the same one written with @opt/nn: every loss within 1e-5 over 60 steps.
import { defaultDevice, init, nn as jaxNn, jit, numpy as np, tree, valueAndGrad } from "@jax-js/jax";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { type BaseOptions, type GroupOptions, type OptimizerClass, parameter, tensor, tidy } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { crossEntropy } from "@opt/nn";
import { sample } from "@opt/testkit";
import { expect, it } from "vitest";
import { applyUpdates, gradientTransformation } from "./transformation";

await init("wasm");
defaultDevice("wasm");

const [PIXELS, HIDDEN, CLASSES, BATCH, STEPS] = [784, 32, 10, 64, 60];

/** Numbers in [0, 1) that repeat from run to run. */
function uniform(size: number, seed: number): Float32Array<ArrayBuffer> {
  let state = seed;
  return Float32Array.from({ length: size }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 8) / 2 ** 24;
  });
}

/** Images of which each class has bright pixels of its own, and noise. */
function digits(step: number) {
  const labels = Int32Array.from({ length: BATCH }, (_, i) => (i * 7 + step) % CLASSES);
  const images = uniform(BATCH * PIXELS, 1000 + step).map((x, i) => {
    const isBright = (i % PIXELS) % CLASSES === labels[Math.floor(i / PIXELS)];
    return isBright ? x : 0.3 * x;
  });
  return { images: images as Float32Array<ArrayBuffer>, labels };
}

const weights = () => ({
  w1: uniform(PIXELS * HIDDEN, 1).map((x) => (x - 0.5) / 14) as Float32Array<ArrayBuffer>,
  b1: new Float32Array(HIDDEN),
  w2: uniform(HIDDEN * CLASSES, 2).map((x) => (x - 0.5) / 3) as Float32Array<ArrayBuffer>,
  b2: new Float32Array(CLASSES),
});

function trainedHere(optimizer: OptimizerClass<BaseOptions>, options: Partial<BaseOptions> & GroupOptions): number[] {
  const { w1, b1, w2, b2 } = weights();
  const device = "js";
  const params = [
    parameter(w1, { shape: [PIXELS, HIDDEN], device }),
    parameter(b1, { device }),
    parameter(w2, { shape: [HIDDEN, CLASSES], device }),
    parameter(b2, { device }),
  ] as const;
  const trained = new optimizer(params, options);
  return Array.from({ length: STEPS }, (_, step) =>
    tidy(() => {
      const { images, labels } = digits(step);
      const x = tensor(images, { shape: [BATCH, PIXELS], device });
      const hidden = x.matmul(params[0]).add(params[1]).relu();
      const loss = crossEntropy(hidden.matmul(params[2]).add(params[3]), tensor(labels, { device }));
      loss.backward();
      trained.step();
      trained.zeroGrad();
      return loss.dataSync()[0]!;
    }),
  );
}

type Weights = { w1: np.Array; b1: np.Array; w2: np.Array; b2: np.Array };

const lossOf = ({ w1, b1, w2, b2 }: Weights, images: np.Array, labels: np.Array) => {
  const hidden = jaxNn.relu(np.add(np.matmul(images, w1), b1));
  const logits = np.add(np.matmul(hidden, w2), b2);
  return np.negative(np.sum(np.multiply(jaxNn.logSoftmax(logits), labels))).div(BATCH);
};

async function trainedInJax(
  optimizer: OptimizerClass<BaseOptions>,
  options: Partial<BaseOptions> & GroupOptions,
): Promise<number[]> {
  const { w1, b1, w2, b2 } = weights();
  let params: Weights = {
    w1: np.array(w1, { shape: [PIXELS, HIDDEN] }),
    b1: np.array(b1),
    w2: np.array(w2, { shape: [HIDDEN, CLASSES] }),
    b2: np.array(b2),
  };
  const tx = gradientTransformation(optimizer, options);
  let state = tx.init(tree.ref(params));
  const lossAndGrads = jit(valueAndGrad(lossOf));
  const losses: number[] = [];
  for (let step = 0; step < STEPS; step++) {
    const { images, labels } = digits(step);
    const x = np.array(images, { shape: [BATCH, PIXELS] });
    const oneHot = jaxNn.oneHot(np.array(labels), CLASSES);
    const [loss, grads] = lossAndGrads(tree.ref(params), x, oneHot) as [np.Array, Weights];
    let updates: Weights;
    [updates, state] = tx.update(grads, state, tree.ref(params));
    params = applyUpdates(params, updates);
    losses.push((await loss.data())[0]!);
  }
  return losses;
}

it.each(
  sample<[string, unknown, object]>([
    ["AdamW", AdamW, { lr: 1e-3 }],
    ["AMSGrad", Adam, { lr: 1e-3, amsgrad: true }],
    ["NAdam", NAdam, { lr: 2e-3 }],
  ]),
)(
  "%s",
  async (_, optimizer, options) => {
    const Class = optimizer as unknown as OptimizerClass<BaseOptions>;
    const [ours, theirs] = [trainedHere(Class, options), await trainedInJax(Class, options)];
    expect(ours.at(-1)).toBeLessThan(0.5 * ours[0]!);
    expect(Math.max(...ours.map((loss, i) => Math.abs(loss - theirs[i]!)))).toBeLessThan(1e-5);
  },
  60_000,
);
