/** TensorFlow.js on its WASM backend, with SIMD: by its own Adam, which has no weight decay and is the nearest to ours, and by ours through @opt/tfjs. */

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { init } from "@opt/core";
import { TfOptimizer } from "@opt/tfjs";
import { setWasmPaths } from "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs-core";
import { type Contender, type Session, timed } from "../contender";
import { OPTIMIZERS } from "../opt";
import { firstParameters, gradients, type OptimizerWork } from "../optimizer-work";

async function openBackend(): Promise<void> {
  const entry = createRequire(import.meta.url).resolve("@tensorflow/tfjs-backend-wasm");
  if (tf.getBackend() === "wasm") return;
  setWasmPaths(`${join(dirname(entry), "/")}`);
  await tf.setBackend("wasm");
  await tf.ready();
}

/** Steps of variables, by gradients that lie in TF.js. */
async function session(optimizer: tf.Optimizer, { tensors, size }: OptimizerWork): Promise<Session> {
  const first = firstParameters(size);
  const variables = Array.from({ length: tensors }, () => tf.tidy(() => tf.variable(tf.tensor1d(first.slice()))));
  const gradient = tf.tensor1d(gradients(size));
  const named = Object.fromEntries(variables.map((variable) => [variable.name, gradient]));
  return {
    run: (steps) => timed(steps, () => optimizer.applyGradients(named)),
    result: async (count) => [...(await variables[0]!.data<"float32">()).subarray(0, count)],
    async close() {
      tf.dispose([...variables, gradient]);
      optimizer.dispose();
    },
  };
}

export const tfjs: Contender<OptimizerWork> = {
  name: "TF.js wasm Adam",
  tolerance: 1e-3, // no weight decay, another epsilon
  async open(work) {
    if (work.optimizer !== "AdamW") return "has Adam only";
    if (work.tensors * work.size > 2 ** 24) return "too slow to be of interest at this size";
    await openBackend();
    return session(tf.train.adam(1e-3, 0.9, 0.999, 1e-8), work);
  },
};

/** The same variables, stepped on a device of ours: gradients are read from TF.js' memory, and variables written to it. */
export function optInTfjs(deviceName: string): Contender<OptimizerWork> {
  return {
    name: `TF.js wasm, opt ${deviceName}`,
    tolerance: 0,
    async open(work) {
      if (work.tensors * work.size > 2 ** 24) return "TF.js is not of interest at this size";
      const device = await init(deviceName).catch((error: Error) => error.message);
      if (typeof device === "string") return device;
      await openBackend();
      const [optimizer, options] = OPTIMIZERS[work.optimizer];
      return session(new TfOptimizer(optimizer, options, { device }), work);
    },
  };
}
