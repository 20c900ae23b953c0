// What programs do with an optimizer: variables that come, go, are frozen and are assigned, scopes, schedules, several models.
import { AdamW } from "@opt/adam-amsgrad";
import { l2, parameter, tensor } from "@opt/core";
import { ExponentialLR } from "@opt/core/schedules";
import { NAdam } from "@opt/nadam";
import { SGD } from "@opt/sgd";
import * as tf from "@tensorflow/tfjs-core";
import { layers, sequential } from "@tensorflow/tfjs-layers";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../testing/backends";
import { gradientOfSquares, squares } from "../testing/single";
import { TfOptimizer } from "./tf-optimizer";

beforeAll(() => useBackend("cpu"));
afterEach(() => tf.disposeVariables());

const variable = (values: number[], trainable = true, name?: string) =>
  tf.tidy(() => tf.variable(tf.tensor1d(values), trainable, name));
const values = (x: tf.Tensor) => [...x.dataSync()];

/** Our own NAdam on the gradients of `squares`, by step which coefficients. */
function own(start: number[], coefficients: readonly number[], options = {}): number[] {
  const w = parameter(start);
  const optimizer = new NAdam([w], { lr: 0.1, ...options });
  for (const coefficient of coefficients) {
    w.grad = tensor(gradientOfSquares(w.dataSync(), coefficient));
    optimizer.step();
  }
  return [...w.dataSync()];
}

describe("variables", () => {
  it("that come later begin with a first step", () => {
    const optimizer = new TfOptimizer(NAdam, { lr: 0.1 });
    const a = variable([1, 2]);
    optimizer.minimize(() => squares(a));
    const b = variable([3]);
    optimizer.minimize(() => tf.add(squares(a), squares(b)));
    expect([a, b].map(values)).toEqual([own([1, 2], [1, 1]), own([3], [1])]);
  });

  it("that are not in varList, not trainable or without a gradient are left alone and count no step", () => {
    const [a, b, c] = [variable([1]), variable([2]), variable([3], false)];
    const optimizer = new TfOptimizer(NAdam, { lr: 0.1 });
    optimizer.minimize(() => tf.add(squares(a), tf.add(squares(b), squares(c))), false, [a, c]);
    expect([a, b, c].map(values)).toEqual([own([1], [1]), [2], [3]]);
    optimizer.applyGradients([
      { name: a.name, tensor: null as never },
      { name: b.name, tensor: tf.tensor1d([4]) },
    ]);
    expect([a, b, c].map(values)).toEqual([own([1], [1]), own([2], [1]), [3]]);
    b.trainable = false;
    optimizer.minimize(() => tf.add(squares(a), squares(b)));
    expect([a, b, c].map(values)).toEqual([own([1], [1, 1]), own([2], [1]), [3]]);
  });

  it("that were disposed take their state with them, also where another has the name", () => {
    const optimizer = new TfOptimizer(NAdam, { lr: 0.1 });
    const [a, b] = [variable([1], true, "a"), variable([2], true, "b")];
    optimizer.minimize(() => tf.add(squares(a), squares(b)));
    a.dispose();
    const again = variable([1], true, "a");
    optimizer.minimize(() => tf.add(squares(again), squares(b)));
    expect([again, b].map(values)).toEqual([own([1], [1]), own([2], [1, 1])]);
    again.dispose();
    optimizer.minimize(() => squares(b));
    expect(Object.keys(optimizer.stateDict().state)).toEqual(["b"]);
    tf.disposeVariables();
    optimizer.applyGradients({});
    expect(optimizer.stateDict().state).toEqual({});
  });

  it("may be scalars, empty, or of many axes", () => {
    const optimizer = new TfOptimizer(NAdam, { lr: 0.1 });
    const [scalar, empty, deep] = tf.tidy(() => [
      tf.variable(tf.scalar(2)),
      tf.variable(tf.zeros([0, 3])),
      tf.variable(tf.ones([1, 2, 1, 2])),
    ]) as tf.Variable[];
    optimizer.minimize(() => tf.addN([squares(scalar!), squares(empty!), squares(deep!)]));
    expect([scalar!, empty!, deep!].map(values)).toEqual([own([2], [1]), [], own([1, 1, 1, 1], [1])]);
    expect([scalar!, empty!, deep!].map(({ shape }) => shape)).toEqual([[], [0, 3], [1, 2, 1, 2]]);
  });
});

describe("scopes", () => {
  it("of TF.js free nothing of ours", () => {
    const w = variable([1, -2]);
    const optimizer = new TfOptimizer(NAdam, { lr: 0.1 });
    for (let i = 0; i < 3; i++) tf.tidy(() => optimizer.minimize(() => squares(w), true)!);
    tf.engine().startScope();
    optimizer.minimize(() => squares(w));
    tf.engine().endScope();
    expect(values(w)).toEqual(own([1, -2], [1, 1, 1, 1]));
  });

  it("minimize returns the loss before the step", () => {
    const w = variable([3]);
    const loss = new TfOptimizer(NAdam).minimize(() => squares(w), true)!;
    expect(values(loss)).toEqual([9]);
    expect(new TfOptimizer(NAdam).minimize(() => squares(w))).toBeNull();
  });
});

describe("options", () => {
  it("learningRate, groups and schedules are one", () => {
    const w = variable([1]);
    const optimizer = new TfOptimizer(SGD, { lr: 0.5 });
    const schedule = new ExponentialLR(optimizer, { gamma: 0.5 });
    optimizer.minimize(() => squares(w, 0.5)); // w halves
    schedule.step();
    expect(optimizer.learningRate).toBe(0.25);
    optimizer.minimize(() => squares(w, 0.5));
    optimizer.learningRate = 1;
    expect([values(w), optimizer.groups[0].lr]).toEqual([[0.375], 1]);
    optimizer.minimize(() => squares(w, 0.5));
    expect(values(w)).toEqual([0]);
  });

  it("clip and penalties are those of our optimizers", () => {
    const [a, b] = [variable([3], true, "a/kernel"), variable([4], true, "b/bias")];
    const penalty = (name: string) => (name.endsWith("kernel") ? l2(1) : null);
    const optimizer = new TfOptimizer(SGD, { lr: 1, clip: { norm: 1 }, regularizer: penalty });
    optimizer.minimize(() => tf.div(tf.add(squares(a), squares(b)), 2));
    expect(values(a)[0]).toBeCloseTo(3 - 0.6 - 3, 5);
    expect(values(b)[0]).toBeCloseTo(4 - 0.8, 5);
  });
});

it("modifications are those of our optimizers", () => {
  const first = [
    [1, -2],
    [3, 0.5],
  ];
  const w = tf.tidy(() => tf.variable(tf.tensor2d(first)));
  const options = {
    lr: 0.1,
    weightDecay: 0.25,
    decay: "cautious" as const,
    cautious: true,
    mars: { gamma: 0.1 },
    hyperball: true,
    centralize: true,
  };
  const optimizer = new TfOptimizer(AdamW, options);
  const own = parameter(first);
  const plain = new AdamW([own], options);
  for (let t = 1; t <= 3; t++) {
    const gradient = first.map((row, i) => row.map((_, j) => Math.fround(Math.sin(t + 2 * i + j))));
    tf.tidy(() => optimizer.applyGradients({ [w.name]: tf.tensor2d(gradient) }));
    own.grad = tensor(gradient);
    plain.step();
  }
  expect(values(w)).toEqual([...own.dataSync()]);
});

describe("several", () => {
  const model = (name?: string) =>
    sequential({ layers: [layers.dense({ units: 1, inputShape: [2], ...(name && { name }) })] });

  it("models with one optimizer, and optimizers on one model, do not disturb each other", async () => {
    const [one, two] = [model("same"), model("same")];
    const x = tf.ones([4, 2]);
    const y = tf.zeros([4, 1]);
    const shared = new TfOptimizer(AdamW, { lr: 0.1 });
    for (const each of [one, two]) each.compile({ optimizer: shared, loss: "meanSquaredError" });
    two.setWeights(one.getWeights().map((w) => tf.clone(w)));
    for (let i = 0; i < 3; i++) {
      await one.trainOnBatch(x, y);
      await two.trainOnBatch(x, y);
    }
    expect(two.getWeights().map(values)).toEqual(one.getWeights().map(values));
    expect(Object.values(shared.stateDict().state).map(({ step }) => step)).toEqual([3, 3, 3, 3]);
    const other = new TfOptimizer(SGD, { lr: 0.1 });
    other.minimize(() => tf.mean(tf.square(one.predict(x) as tf.Tensor)));
    await one.trainOnBatch(x, y);
    expect(Object.values(shared.stateDict().state).map(({ step }) => step)).toEqual([4, 4, 3, 3]);
  });
});
