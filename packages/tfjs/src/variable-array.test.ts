// Where a variable's values lie between steps, on each kind of backend, and who else sees them.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { init } from "@opt/core";
import { SGD } from "@opt/sgd";
import * as tf from "@tensorflow/tfjs-core";
import { afterAll, describe, expect, it, vi } from "vitest";
import { BACKENDS, useBackend } from "../testing/backends";
import { squares } from "../testing/single";
import { TfOptimizer } from "./tf-optimizer";

const devices = await Promise.all(["js", "wasm", "cpu"].map((name) => init(name)));
afterAll(() => tf.disposeVariables());

const values = (x: tf.Tensor) => [...x.dataSync()];

describe.each(BACKENDS.flatMap((host) => devices.map((device) => ({ host, device }))))(
  "$host, $device.name",
  (each) => {
    const { host, device } = each;
    /** w halves with each step. */
    const start = async (inPlace = true) => {
      await useBackend(host);
      const w = tf.variable(tf.tensor1d([8, -4]));
      const optimizer = new TfOptimizer(SGD, { lr: 0.25 }, { device, inPlace });
      return { w, optimizer, step: () => optimizer.minimize(() => squares(w), false, [w]) };
    };

    it.each([true, false])(
      "clones and arrays that the program made keep their values (inPlace %s)",
      async (inPlace) => {
        const { w, step } = await start(inPlace);
        const given = Float32Array.of(8, -4);
        w.assign(tf.tensor1d(given));
        const seen: tf.Tensor[] = [w.clone()];
        for (let i = 0; i < 3; i++) {
          step();
          seen.push(w.clone(), tf.reshape(w, [2, 1]));
        }
        const expected = [8, 4, 4, 2, 2, 1, 1].map((value) => [value, -value / 2]);
        expect(seen.map(values)).toEqual(expected);
        expect([...given]).toEqual([8, -4]);
        expect(values(w)).toEqual([1, -0.5]);
      },
    );

    it("goes on from what the program assigns, also while it is read elsewhere", async () => {
      const { w, step } = await start();
      step();
      const former = w.clone();
      const other = tf.tensor1d([100, 10]);
      w.assign(other);
      step();
      step();
      expect([w, other, former].map(values)).toEqual([
        [25, 2.5],
        [100, 10],
        [4, -2],
      ]);
    });

    it("is read once, and again only after an assignment", async () => {
      const { w, step } = await start();
      const read = vi.spyOn(w, "dataSync");
      for (let i = 0; i < 3; i++) step();
      expect(read).toHaveBeenCalledTimes(1);
      w.assign(tf.tensor1d([1, 1]));
      for (let i = 0; i < 3; i++) step();
      expect(read).toHaveBeenCalledTimes(2);
    });

    it("follows the program to other backends and back", async () => {
      const { w, step } = await start();
      step();
      const kept = w.clone();
      for (const next of BACKENDS) {
        await useBackend(next);
        step();
      }
      await useBackend(host);
      step();
      expect([w, kept].map(values)).toEqual([
        [0.25, -0.125],
        [4, -2],
      ]);
    });

    it("leaves arrays that were read alone, but for TF.js' cpu backend in place", async () => {
      for (const inPlace of [true, false]) {
        const { w, step } = await start(inPlace);
        step();
        const read = w.dataSync();
        step();
        const changes = host === "cpu" && inPlace;
        expect([...read]).toEqual(changes ? [2, -1] : [4, -2]);
        expect(w.dataSync() === read).toBe(changes);
      }
    });

    it("leaves variables as they are when the optimizer is disposed, and goes on from there", async () => {
      const { w, optimizer, step } = await start();
      step();
      optimizer.dispose();
      expect(values(w)).toEqual([4, -2]);
      step();
      expect(values(w)).toEqual([2, -1]);
    });
  },
);

it.each(devices)("what the program writes into a variable's own array is stepped, $name", async (device) => {
  await useBackend("cpu");
  const w = tf.variable(tf.tensor1d([8, -4]));
  const optimizer = new TfOptimizer(SGD, { lr: 0.25 }, { device });
  for (let i = 0; i < 2; i++) optimizer.minimize(() => squares(w), false, [w]);
  w.dataSync()[0] = 100;
  optimizer.minimize(() => squares(w), false, [w]);
  expect(values(w)).toEqual([50, -0.5]);
});
