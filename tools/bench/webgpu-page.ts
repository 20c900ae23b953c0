/** What the page of the WebGPU benchmark runs: three frameworks on one adapter, by the measure of the other benchmarks. */
import "@opt/kernels-webgpu";
import { type Contender, timed } from "./contender";
import { measure, type WorkReport } from "./measure";
import { opt } from "./opt";
import { firstParameters, gradients, type OptimizerWork } from "./optimizer-work";

// biome-ignore lint/suspicious/noExplicitAny: peers are not installed where types are checked
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

/** jax-js: AdamW as one jit-compiled function, which is how one would write it there. */
const jaxJs: Contender<OptimizerWork> = {
  name: "jax-js webgpu jit AdamW",
  tolerance: 1e-4,
  async open({ tensors, size }) {
    const jax = await peer("jax-js");
    if (!(await jax.init("webgpu")).includes("webgpu")) return "its WebGPU backend does not open";
    jax.defaultDevice("webgpu");
    const { numpy: np, jit } = jax;
    // biome-ignore lint/suspicious/noExplicitAny: arrays of a peer that is not installed where types are checked
    const update = jit((p: any, m: any, v: any, g: any, stepSize: any, correction: any) => {
      const newM = m.mul(0.9).add(np.multiply(g.ref, 0.1));
      const newV = v.mul(0.999).add(np.multiply(np.multiply(g.ref, g), 0.001));
      const denominator = np.add(np.multiply(np.sqrt(newV.ref), correction), 1e-8);
      const newP = np.subtract(p.mul(1 - 1e-5), np.multiply(stepSize, np.divide(newM.ref, denominator)));
      return [newP, newM, newV];
    });
    const gradient = np.array(gradients(size));
    const states = Array.from({ length: tensors }, () => [
      np.array(firstParameters(size)),
      np.zeros([size]),
      np.zeros([size]),
    ]);
    let t = 0;
    const step = () => {
      t++;
      const stepSize = np.array(1e-3 / (1 - 0.9 ** t));
      const correction = np.array(1 / Math.sqrt(1 - 0.999 ** t));
      states.forEach((state, i) => {
        states[i] = update(state[0], state[1], state[2], gradient.ref, stepSize.ref, correction.ref);
      });
      stepSize.dispose();
      correction.dispose();
    };
    return {
      run: (steps) =>
        timed(steps, step, async () => {
          for (const state of states) for (const array of state) await array.blockUntilReady();
        }),
      result: async (count) => [...((await states[0]![0].ref.data()) as Float32Array).subarray(0, count)],
      async close() {
        for (const state of states) for (const array of state) array.dispose();
        gradient.dispose();
      },
    };
  },
};

declare global {
  var benchmark: (work: OptimizerWork, rounds: number) => Promise<WorkReport<OptimizerWork>>;
}

globalThis.benchmark = (work, rounds) => measure(work, [opt("webgpu"), jaxJs, tfjs], rounds);
