/** What the page of the WebGPU benchmark runs: frameworks on one adapter, by the measure of the other benchmarks. */
import "@opt/kernels-webgpu";
import "@tensorflow/tfjs-backend-webgpu";
import * as tf from "@tensorflow/tfjs-core";
import type { Contender } from "../contender";
import { measure, type WorkReport } from "../measure";
import { opt } from "../opt";
import type { OptimizerWork } from "../optimizer-work";
import { jaxJs, optaxInJaxJs, optInJaxJs } from "./jax-js";
import { ADAM_TOLERANCE, adamOf, tfSteps } from "./tfjs-steps";

const tfjs: Contender<OptimizerWork> = {
  name: "TF.js webgpu Adam",
  tolerance: ADAM_TOLERANCE,
  async open(work) {
    await tf.setBackend("webgpu");
    await tf.ready();
    if (tf.getBackend() !== "webgpu") return "its WebGPU backend does not open";
    return tfSteps(tf, adamOf(tf), work, true);
  },
};

declare global {
  var benchmark: (work: OptimizerWork, rounds: number) => Promise<WorkReport<OptimizerWork>>;
}

globalThis.benchmark = (work, rounds) =>
  measure(work, [opt("webgpu"), optInJaxJs("webgpu"), jaxJs("webgpu"), optaxInJaxJs("webgpu"), tfjs], rounds);
