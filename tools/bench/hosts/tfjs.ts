/** TensorFlow.js on its WASM backend, with SIMD: by its own Adam, and by ours through @opt/tfjs. */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { init } from "@opt/core";
import { TfOptimizer } from "@opt/tfjs";
import { setWasmPaths } from "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs-core";
import type { Contender } from "../contender";
import { optimizerOf } from "../opt";
import type { OptimizerWork } from "../optimizer-work";
import { ADAM_TOLERANCE, adamOf, tfSteps } from "./tfjs-steps";

async function openBackend(): Promise<void> {
  const entry = createRequire(import.meta.url).resolve("@tensorflow/tfjs-backend-wasm");
  if (tf.getBackend() === "wasm") return;
  setWasmPaths(`${join(dirname(entry), "/")}`);
  await tf.setBackend("wasm");
  await tf.ready();
}

export const tfjs: Contender<OptimizerWork> = {
  name: "TF.js wasm Adam",
  tolerance: ADAM_TOLERANCE,
  async open(work) {
    if (work.optimizer !== "AdamW") return "has Adam only";
    if (work.tensors * work.size > 2 ** 24) return "too slow to be of interest at this size";
    await openBackend();
    return tfSteps(tf, adamOf(tf), work, false);
  },
};

/** The same variables, stepped on a device of ours: gradients are read from TF.js' memory, and variables written to it. */
export function optInTfjs(deviceName: string): Contender<OptimizerWork> {
  return {
    name: `TF.js wasm, opt ${deviceName}`,
    tolerance: 0,
    async open(work) {
      if (work.rows !== undefined) return "written for vectors";
      if (work.tensors * work.size > 2 ** 24) return "TF.js is not of interest at this size";
      const device = await init(deviceName).catch((error: Error) => error.message);
      if (typeof device === "string") return device;
      await openBackend();
      const [optimizer, options] = optimizerOf(work.optimizer);
      return tfSteps(tf, new TfOptimizer(optimizer, options, { device }), work, false);
    },
  };
}
