/** TF.js' backends as they open in Node, with the gradients of all ops, which its layers bring. */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { MathBackendCPU } from "@tensorflow/tfjs-backend-cpu";
import { setWasmPaths } from "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs-core";
import "@tensorflow/tfjs-layers";

tf.enableProdMode(); // says nothing about tfjs-node

const wasm = createRequire(import.meta.url).resolve("@tensorflow/tfjs-backend-wasm");
setWasmPaths(`${join(dirname(wasm), "/")}`);

// As webgl, webgpu and tfjs-node do: arrays are kept, and tensors read from them later.
tf.registerBackend("keeper", () => new MathBackendCPU());
tf.copyRegisteredKernels("cpu", "keeper");

export const BACKENDS = ["cpu", "wasm", "keeper"] as const;

export async function useBackend(name: (typeof BACKENDS)[number]): Promise<void> {
  await tf.setBackend(name);
  await tf.ready();
}
