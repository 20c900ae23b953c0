// Training that is saved and goes on elsewhere equals training that was not interrupted, bit for bit.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from "@opt/checkpoint";
import { type BaseOptions, enableQ8, l2, type Tensor, tensor } from "@opt/core";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import * as tf from "@tensorflow/tfjs-core";
import { type LayersModel, layers, loadLayersModel, sequential } from "@tensorflow/tfjs-layers";
import fc from "fast-check";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { BACKENDS, useBackend } from "../testing/backends";
import { OPTIMIZERS } from "../testing/optimizers";
import { squares } from "../testing/single";
import { TfOptimizer } from "./tf-optimizer";

enableQ8();
const folder = mkdtempSync(join(tmpdir(), "opt-tfjs-"));
afterAll(() => rmSync(folder, { recursive: true }));
await useBackend("cpu");
afterEach(() => tf.disposeVariables());

const values = (x: tf.Tensor) => [...x.dataSync()];
const weightsOf = (model: LayersModel) => model.getWeights().map(values);

const x = tf.randomNormal([4, 64], 0, 1, "float32", 7);
const y = tf.randomNormal([4, 2], 0, 1, "float32", 8);

function modelOf(seed: number): LayersModel {
  const kernelInitializer = "glorotNormal";
  const model = sequential({
    layers: [
      layers.dense({ units: 65, inputShape: [64], activation: "tanh", kernelInitializer, name: `hidden${seed}` }),
      layers.dense({ units: 2, kernelInitializer, name: `out${seed}` }),
    ],
  });
  model.setWeights(model.getWeights().map(({ shape }, i) => tf.randomNormal(shape, 0, 0.1, "float32", seed + i)));
  return model;
}

const train = async (model: LayersModel, steps: number) => {
  for (let i = 0; i < steps; i++) await model.trainOnBatch(x, y);
};

const CHOSEN: typeof OPTIMIZERS = [
  ...OPTIMIZERS.filter(([name]) => /AMSGrad|NAdam|SGD {/.test(name)),
  ["AdamW with q8 state", AdamW, Object.assign({ lr: 0.01 }, { stateDType: "q8" })],
];

let count = 0;
/** What a file would hold. */
async function saved(model: LayersModel): Promise<tf.io.ModelArtifacts> {
  let artifacts: tf.io.ModelArtifacts | undefined;
  const handler = tf.io.withSaveHandler(async (given) => {
    artifacts = given;
    return { modelArtifactsInfo: { dateSaved: new Date(0), modelTopologyType: "JSON" } };
  });
  await model.save(handler, { includeOptimizer: true });
  const { weightData, ...json } = artifacts!;
  return { ...JSON.parse(JSON.stringify(json)), weightData };
}

describe.each(CHOSEN)("%s", (_, optimizer, options) => {
  const compiled = async (steps: number) => {
    const model = modelOf(100 * ++count);
    const used = new TfOptimizer(optimizer, options);
    model.compile({ optimizer: used, loss: "meanSquaredError" });
    await train(model, steps);
    return { model, used };
  };

  it.each(optimizer === NAdam ? BACKENDS : ["cpu" as const])(
    "goes on from what model.save wrote, on %s",
    async (backend) => {
      await useBackend(backend);
      const { model, used } = await compiled(3);
      used.learningRate = 0.02;
      const artifacts = await saved(model);
      const loaded = await loadLayersModel(tf.io.fromMemory(artifacts));
      expect((loaded.optimizer as TfOptimizer<BaseOptions>).getConfig()).toEqual(used.getConfig());
      expect(loaded.optimizer.iterations).toBe(3);
      const again = await saved(loaded); // before it has stepped
      const [first, second] = [artifacts, again].map(({ weightData }) => Buffer.from(weightData as ArrayBuffer));
      expect(second!.equals(first!)).toBe(true);
      const third = await loadLayersModel(tf.io.fromMemory(again));
      for (const each of [model, loaded, third]) await train(each, 2);
      expect(weightsOf(loaded)).toEqual(weightsOf(model));
      expect(weightsOf(third)).toEqual(weightsOf(model));
      await useBackend("cpu");
    },
  );

  it("goes on from a checkpoint", async () => {
    const { model, used } = await compiled(3);
    const { tensors, values: numbers } = optimizerContents(used.stateDict());
    const weights = Object.fromEntries(
      model.weights.map((w) => [w.name, tensor(w.read().dataSync() as Float32Array, { shape: w.shape as number[] })]),
    );
    const place = join(folder, `run${count}`);
    await saveCheckpoint(place, { step: 3, tensors: { ...weights, ...tensors }, values: numbers });
    const kept = model.getWeights().map((w) => tf.clone(w));
    await train(model, 3);
    const expected = weightsOf(model);

    model.setWeights(kept);
    const { stateDType } = options as { stateDType?: string }; // the saved one does not replace it
    const resumed = new TfOptimizer(optimizer, { lr: 0.5, stateDType } as Partial<BaseOptions>);
    resumed.loadStateDict(optimizerState(await loadCheckpoint(place)));
    expect([resumed.learningRate, resumed.iterations]).toEqual([used.learningRate, 3]);
    model.compile({ optimizer: resumed, loss: "meanSquaredError" });
    await train(model, 3);
    expect(weightsOf(model)).toEqual(expected);
    model.setWeights(kept);
    used.loadStateDict(optimizerState(await loadCheckpoint(place))); // of an optimizer that has gone on meanwhile
    model.compile({ optimizer: used, loss: "meanSquaredError" });
    await train(model, 3);
    expect(weightsOf(model)).toEqual(expected);
  });
});

it("a penalty that is a function is left out of what is saved", () => {
  const optimizer = new TfOptimizer(NAdam, { regularizer: () => l2(0.5) });
  const { groups } = optimizer.stateDict();
  expect(JSON.parse(JSON.stringify(groups))).toEqual(groups);
});

it("options that TF.js would write otherwise come back as they were", async () => {
  const model = sequential({ layers: [layers.dense({ units: 2, inputShape: [64], useBias: false })] });
  const optimizer = new TfOptimizer(Muon, {
    lr: 0.02,
    adjustLrFn: "match_rms_adamw",
    clip: { norm: 2 },
    regularizer: l2(0.5),
  });
  model.compile({ optimizer, loss: "meanSquaredError" });
  await train(model, 1);
  const loaded = await loadLayersModel(tf.io.fromMemory(await saved(model)));
  expect((loaded.optimizer as typeof optimizer).groups).toEqual(optimizer.groups);
});

describe("loaded state", () => {
  const variable = (value: number, name: string) => tf.tidy(() => tf.variable(tf.scalar(value), true, name));
  const step = (optimizer: TfOptimizer<BaseOptions>, ...variables: tf.Variable[]) =>
    optimizer.minimize(() => tf.addN(variables.map((w) => squares(w))), false, variables);
  const steps = (optimizer: TfOptimizer<BaseOptions>) =>
    Object.fromEntries(Object.entries(optimizer.stateDict().state).map(([name, { step }]) => [name, step]));
  const fresh = () => new TfOptimizer(NAdam) as unknown as TfOptimizer<BaseOptions>;

  it("waits for variables that come one after the other, and is saved while it waits", async () => {
    const [a, b, c] = ["a", "b", "c"].map((name, i) => variable(i + 1, name)) as [
      tf.Variable,
      tf.Variable,
      tf.Variable,
    ];
    const first = fresh();
    step(first, a, b);
    step(first, a);
    const next = fresh();
    await next.setWeights(await first.getWeights());
    step(next, b);
    expect([steps(next), next.iterations]).toEqual([{ a: 2, b: 2 }, 3]);
    step(next, c); // not a, whose state still waits
    step(next, c, a);
    expect(steps(next)).toEqual({ a: 3, b: 2, c: 2 });
  });

  it("is given to who asks inside a scope, and outlives it", async () => {
    const optimizer = fresh();
    step(optimizer, variable(1, "a"));
    tf.engine().startScope();
    const asked = optimizer.getWeights();
    tf.engine().endScope();
    expect((await asked).map(({ name, tensor }) => [name, tensor.isDisposed])).toEqual(
      ["iter", "a/step", "a/mu_product", "a/exp_avg", "a/exp_avg_sq"].map((name) => [name, false]),
    );
  });

  it("is found by order where all names are others, once", () => {
    const [a, b] = [variable(1, "a"), variable(2, "b")];
    const first = fresh();
    step(first, a, b);
    step(first, b);
    const next = fresh();
    next.loadStateDict(first.stateDict());
    const [x, y, z] = ["x", "y", "z"].map((name) => variable(1, name)) as [tf.Variable, tf.Variable, tf.Variable];
    step(next, x, y);
    step(next, z);
    expect(steps(next)).toEqual({ x: 2, y: 3, z: 1 });
  });

  it("is the same from parts of larger arrays", async () => {
    const a = variable(1, "parts");
    const [first, next] = [fresh(), fresh()];
    step(first, a);
    const inside = (await first.getWeights()).map(({ name, tensor: { dtype, shape, size }, tensor: own }) => {
      const wide = dtype === "int32" ? new Int32Array(size + 4) : new Float32Array(size + 4);
      wide.set(own.dataSync(), 2);
      return { name, tensor: tf.tensor(wide.subarray(2, size + 2), shape, dtype) };
    });
    await next.setWeights(inside);
    for (const optimizer of [first, next]) {
      a.assign(tf.scalar(1));
      step(optimizer, a);
    }
    const numbers = ({ state }: ReturnType<typeof first.stateDict>) => {
      const { step, mu_product, exp_avg } = state.parts!;
      return [step, mu_product, (exp_avg as Tensor).dataSync()[0]];
    };
    expect(numbers(next.stateDict())).toEqual(numbers(first.stateDict()));
  });

  it("replaces what there is, also what waits", () => {
    const a = variable(1, "a");
    const [first, other] = [fresh(), fresh()];
    step(first, a);
    const saved = first.stateDict();
    other.loadStateDict({ groups: saved.groups, state: { a: { ...saved.state.a!, step: 7 } } });
    other.loadStateDict(saved);
    step(other, a);
    expect(steps(other)).toEqual({ a: 2 });
    other.loadStateDict({ groups: saved.groups, state: {} });
    expect(steps(other)).toEqual({});
  });
});

it("loads the options that a state has, and keeps the others as they were set last", () => {
  const own = { lr: 0.25, weightDecay: 0.5, momentumDecay: 0.125 };
  const theirs = { lr: 1, weightDecay: 2, momentumDecay: 3 };
  fc.assert(
    fc.property(fc.subarray(Object.keys(own)), fc.subarray(Object.keys(own)), (set, saved) => {
      const some = (options: object, names: readonly string[]) =>
        Object.fromEntries(Object.entries(options).filter(([name]) => names.includes(name)));
      const optimizer = new TfOptimizer(NAdam);
      const before = { ...optimizer.groups[0] };
      Object.assign(optimizer.groups[0], some(own, set));
      optimizer.loadStateDict({ groups: [{ ...some(theirs, saved), params: [] }] as never, state: {} });
      expect(optimizer.groups[0]).toEqual({ ...before, ...some(own, set), ...some(theirs, saved) });
      optimizer.dispose();
    }),
    { seed: 1, numRuns: 30 },
  );
});

it("an optimizer that was disposed goes on as a new one", async () => {
  await useBackend("cpu");
  const [used, fresh] = [new TfOptimizer(NAdam), new TfOptimizer(NAdam)];
  const stepped = async (optimizer: TfOptimizer<never>, name: string) => {
    const w = tf.tidy(() => tf.variable(tf.tensor1d([1, 2]), true, name));
    optimizer.applyGradients({ [name]: tf.tensor1d([3, 4]) });
    const saved = (await optimizer.getWeights()).map(({ name: key, tensor }) => [
      key.split("/").at(-1),
      [...tensor.dataSync()],
    ]);
    return [optimizer.iterations, [...w.dataSync()], saved];
  };
  await stepped(used as never, "first");
  used.dispose();
  expect(await stepped(used as never, "second")).toEqual(await stepped(fresh as never, "third"));
});
