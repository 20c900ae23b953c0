/** jax-js on its WASM backend: AdamW as one jit-compiled function, which is how one would write it there. */
import { type Contender, timed } from "./contender";
import { firstParameters, gradients, type OptimizerWork } from "./optimizer-work";
import { importPeer } from "./peers";

export const jaxJs: Contender<OptimizerWork> = {
  name: "jax-js wasm jit AdamW",
  tolerance: 1e-4,
  async open({ optimizer, tensors, size }) {
    if (optimizer !== "AdamW") return "written for AdamW";
    if (tensors * size > 2 ** 24 || tensors > 100) return "too slow to be of interest at this size";
    const jax = await importPeer("@jax-js/jax");
    if (typeof jax === "string") return "peers are not installed: npm ci in tools/bench/peers";
    await jax.init("wasm");
    jax.defaultDevice("wasm");
    const { numpy: np, jit } = jax;
    // Arrays move into operations; .ref keeps one for a later use.
    const update = jit((p: never, m: never, v: never, g: never, stepSize: never, correction: never) => {
      const [P, M, V, G] = [p, m, v, g] as { ref: unknown; mul(x: unknown): { add(x: unknown): { ref: unknown } } }[];
      const newM = M!.mul(0.9).add(np.multiply((G as { ref: unknown }).ref, 0.1));
      const newV = V!.mul(0.999).add(np.multiply(np.multiply((G as { ref: unknown }).ref, G), 0.001));
      const denominator = np.add(np.multiply(np.sqrt(newV.ref), correction), 1e-8);
      const newP = np.subtract(P!.mul(1 - 1e-5), np.multiply(stepSize, np.divide(newM.ref, denominator)));
      return [newP, newM, newV];
    });
    const gradient = np.array(gradients(size));
    const states = Array.from({ length: tensors }, () => [
      np.array(firstParameters(size)),
      np.zeros([size]),
      np.zeros([size]),
    ]);
    let t = 0;
    const step = async () => {
      t++;
      const stepSize = np.array(1e-3 / (1 - 0.9 ** t));
      const correction = np.array(1 / Math.sqrt(1 - 0.999 ** t));
      states.forEach((state, i) => {
        states[i] = update(state[0], state[1], state[2], gradient.ref, stepSize.ref, correction.ref);
      });
      stepSize.dispose();
      correction.dispose();
      for (const state of states) await state[0].blockUntilReady();
    };
    return {
      run: (steps) => timed(steps, step),
      result: async (count) => [...((await states[0]![0].ref.data()) as Float32Array).subarray(0, count)],
      async close() {
        for (const state of states) for (const array of state) array.dispose();
        gradient.dispose();
      },
    };
  },
};
