/** TensorFlow.js on its WASM backend, with threads and SIMD. It has Adam without weight decay, the nearest to ours. */

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type Contender, timed } from "./contender";
import { firstParameters, gradients, type OptimizerWork } from "./optimizer-work";
import { importPeer } from "./peers";

export const tfjs: Contender<OptimizerWork> = {
  name: "TF.js wasm Adam",
  tolerance: 1e-3, // no weight decay, another epsilon
  async open({ optimizer: name, tensors, size }) {
    if (name !== "AdamW") return "has Adam only";
    if (tensors * size > 2 ** 24) return "too slow to be of interest at this size";
    const tf = await importPeer("@tensorflow/tfjs-core");
    const wasm = await importPeer("@tensorflow/tfjs-backend-wasm");
    if (typeof tf === "string" || typeof wasm === "string")
      return "peers are not installed: npm ci in tools/bench/peers";
    const entry = createRequire(new URL("./peers/package.json", import.meta.url)).resolve(
      "@tensorflow/tfjs-backend-wasm",
    );
    wasm.setWasmPaths(`${join(dirname(entry), "/")}`);
    await tf.setBackend("wasm");
    await tf.ready();
    const variables = Array.from({ length: tensors }, (_, i) =>
      tf.variable(tf.tensor1d(firstParameters(size)), true, `w${i}-${Math.random()}`),
    );
    const gradient = tf.tensor1d(gradients(size));
    const named = Object.fromEntries(variables.map((variable: { name: string }) => [variable.name, gradient]));
    const optimizer = tf.train.adam(1e-3, 0.9, 0.999, 1e-8);
    return {
      run: (steps) => timed(steps, () => optimizer.applyGradients(named)),
      result: async (count) => [...((await variables[0].data()) as Float32Array).subarray(0, count)],
      async close() {
        tf.dispose([...variables, gradient]);
        optimizer.dispose();
      },
    };
  },
};
