// State goes through checkpoints, to the optimizer's class and back, and training goes on where it stopped.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defaultDevice, init, numpy as np, tree } from "@jax-js/jax";
import { loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from "@opt/checkpoint";
import { init as initOurs, type OptimizerState, parameter, type Tensor, tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { SGD } from "@opt/sgd";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import type { Tree } from "./leaves";
import { fromTensors, toTensors } from "./tensors";
import { applyUpdates, gradientTransformation, type State } from "./transformation";

await init("wasm");
defaultDevice("wasm");

const tx = gradientTransformation(NAdam, { lr: 0.1 });
const start = () => ({
  layers: [
    {
      w: np.array([
        [1, -2],
        [3, 4],
      ]),
    },
  ],
  b: np.array([0.5, 1]),
});
type Params = ReturnType<typeof start>;
const gradients = (t: number) => ({
  layers: [
    {
      w: np.array([
        [t, 1],
        [-1, 2],
      ]),
    },
  ],
  b: np.array([1 / t, 0]),
});

function train(from: Params, known: State<Params>, first: number, last: number): [Params, State<Params>] {
  let [params, state] = [from, known];
  for (let t = first; t <= last; t++) {
    let updates: Params;
    [updates, state] = tx.update(gradients(t), state, tree.ref(params));
    params = applyUpdates(params, updates);
  }
  return [params, state];
}

const numbersOf = async (params: Params) =>
  Object.values(await toTensors(params)).map((x: Tensor) => [...x.dataSync()]);

it("goes on from a checkpoint with the same bits", async () => {
  const [whole] = train(start(), tx.init(start()), 1, 5);
  const [params, state] = train(start(), tx.init(start()), 1, 3);
  const { tensors, values } = optimizerContents(await tx.stateDict(state, tree.ref(params)));
  const folder = mkdtempSync(join(tmpdir(), "opt-jax-"));
  await saveCheckpoint(folder, { step: 3, tensors: { ...(await toTensors(params)), ...tensors }, values });
  const loaded = await loadCheckpoint(folder);
  const again = await fromTensors(loaded.tensors, start());
  const resumed = await tx.loadStateDict(optimizerState(loaded), tree.ref(again));
  expect(resumed.step).toBe(3);
  expect(await numbersOf(train(again, resumed, 4, 5)[0])).toEqual(await numbersOf(whole));
});

it("saves what the class loads, and loads what the class saved", async () => {
  const [params, state] = train(start(), tx.init(start()), 1, 3);
  const own = Object.entries(await toTensors(params)).map(([name, x]) => [name, parameter(x)] as const);
  const optimizer = new NAdam(own, { lr: 0.1 });
  optimizer.loadStateDict(await tx.stateDict(state, start()));
  for (const [, x] of own)
    x.grad = tensor(
      Array.from({ length: x.size }, () => 1),
      { shape: x.shape },
    );
  optimizer.step();
  const back = await tx.loadStateDict(optimizer.stateDict(), start());
  expect(back.step).toBe(4);
  expect((back.exp_avg as Params).b.js()).toEqual([...(optimizer.stateDict().state.b!.exp_avg as Tensor).dataSync()]);
});

it("of steps that were never taken or keep nothing is empty", async () => {
  const { groups, state } = await tx.stateDict(tx.init(start()), start());
  expect([groups[0]!.params, groups[0]!.lr, state]).toEqual([["layers.0.w", "b"], 0.1, {}]);
  expect((await tx.loadStateDict({ groups, state }, start())).step).toBe(0);
  const sgd = gradientTransformation(SGD);
  const saved = await sgd.stateDict(sgd.init(start()), start());
  expect(await sgd.loadStateDict(saved, start())).toEqual(sgd.init(start()));
});

it("has empty arrays and scalars, and float64 where the engine takes it", async () => {
  const isWide = "Float16Array" in globalThis;
  const make = () => ({
    empty: np.zeros([0, 3]),
    one: np.array(1 / 3),
    ...(isWide && { wide: np.array([1 / 3]).astype(np.float64) }),
  });
  const back = await fromTensors(await toTensors(make()), make());
  expect(back.empty.shape).toEqual([0, 3]);
  expect([back.one.js(), back.wide?.dtype]).toEqual([Math.fround(1 / 3), isWide ? "float64" : undefined]);
  const adam = await gradientTransformation(NAdam).loadStateDict(await tx.stateDict(tx.init(make()), make()), make());
  expect(adam.step).toBe(0);
});

it("is rejected where it does not fit, and nothing is consumed", async () => {
  const [params, state] = train(start(), tx.init(start()), 1, 1);
  const saved = await tx.stateDict(state, tree.ref(params));
  const entry = saved.state.b!;
  const without = ({ [Object.keys(saved.state)[0]!]: _, ...others }: OptimizerState["state"]) => others;
  const states: unknown[] = [
    null,
    { groups: [] },
    { ...saved, groups: [null] },
    { ...saved, state: without(saved.state) },
    { ...saved, state: { ...saved.state, b: { ...entry, step: 7 } } },
    { ...saved, state: { ...saved.state, b: { step: 1 } } },
    { ...saved, state: { ...saved.state, b: { ...entry, exp_avg: tensor([1, 2, 3]) } } },
  ];
  for (const each of states) await expectCode("BAD_STATE", () => tx.loadStateDict(each as OptimizerState, params));
  await expectCode("BAD_STATE", () => fromTensors({}, params));
  const { layers, b } = params;
  const others: Tree[] = [{ b }, { layers, b, c: start().b }, { weight: layers[0]!.w, bias: b }];
  for (const other of others) {
    await expectCode("BAD_STATE", () => tx.loadStateDict(saved, other));
  }
  (entry.exp_avg as Tensor).dispose();
  await expectCode("DISPOSED", () => tx.loadStateDict(saved, params));
  const wide = { b: np.zeros([2]).astype(np.float64) };
  if (!("Float16Array" in globalThis)) await expectCode("UNSUPPORTED", () => fromTensors({ b: tensor([1, 2]) }, wide));
  expect(params.b.refCount).toBe(1);
});

it("leaves no tensor behind, whatever the dtype of what it loads", async () => {
  const device = await initOurs("js");
  const [, state] = train(start(), tx.init(start()), 1, 1);
  const saved = await tx.stateDict(state, start());
  for (const dtype of ["f32", "f64", "f16"] as const) {
    const given = Object.entries(saved.state).map(([name, entry]) => [
      name,
      Object.fromEntries(
        Object.entries(entry).map(([key, value]) => [key, typeof value === "number" ? value : value.to(dtype)]),
      ),
    ]);
    const weights = Object.fromEntries(
      Object.entries(await toTensors(start())).map(([name, value]) => [name, value.to(dtype)]),
    );
    const { tensors } = device.memory();
    tree.dispose(
      (await tx.loadStateDict({ groups: saved.groups, state: Object.fromEntries(given) }, start())) as never,
    );
    tree.dispose(await fromTensors(weights, start()));
    expect(device.memory().tensors).toBeLessThanOrEqual(tensors);
  }
});
