/** What the page of the WebGPU benchmark runs: frameworks on one adapter, by the measure of the other benchmarks. */
import "@opt/kernels-webgpu";
import { type Contender, timed } from "../contender";
import { measure, type WorkReport } from "../measure";
import { opt } from "../opt";
import { firstParameters, gradients, type OptimizerWork } from "../optimizer-work";
import { jaxJs, optaxInJaxJs, optInJaxJs } from "./jax-js";

// biome-ignore lint/suspicious/noExplicitAny: bundled apart, at run time
const peer = (name: string): Promise<any> => import(`${location.origin}/${name}.js`);

/** TensorFlow.js: Adam without weight decay, the nearest that it has. */
const tfjs: Contender<OptimizerWork> = {
  name: "TF.js webgpu Adam",
  tolerance: 1e-3,
  async open({ tensors, size }) {
    const tf = await peer("tfjs");
    await tf.setBackend("webgpu");
    await tf.ready();
    if (tf.getBackend() !== "webgpu") return "its WebGPU backend does not open";
    const variables = Array.from({ length: tensors }, () => tf.variable(tf.tensor1d(firstParameters(size))));
    const gradient = tf.tensor1d(gradients(size));
    const named = Object.fromEntries(variables.map((variable: { name: string }) => [variable.name, gradient]));
    const optimizer = tf.train.adam(1e-3, 0.9, 0.999, 1e-8);
    const read = async (count: number) => {
      const part = tf.slice(variables[0], [0], [count]);
      const values = await part.data();
      part.dispose();
      return [...(values as Float32Array)];
    };
    return {
      run: (steps) =>
        timed(
          steps,
          () => optimizer.applyGradients(named),
          () => read(1),
        ),
      result: read,
      async close() {
        tf.dispose([...variables, gradient]);
        optimizer.dispose();
      },
    };
  },
};

declare global {
  var benchmark: (work: OptimizerWork, rounds: number) => Promise<WorkReport<OptimizerWork>>;
}

globalThis.benchmark = (work, rounds) =>
  measure(work, [opt("webgpu"), optInJaxJs("webgpu"), jaxJs("webgpu"), optaxInJaxJs("webgpu"), tfjs], rounds);
