/** What one writes without a library: a loop over typed arrays, in double precision as JavaScript computes it. */
import { type Contender, timed } from "../contender";
import { firstParameters, gradients, type OptimizerWork } from "../optimizer-work";

export const typedArrayLoop: Contender<OptimizerWork> = {
  name: "typed-array loop",
  tolerance: 1e-5,
  async open({ optimizer, tensors, size }) {
    if (optimizer !== "AdamW") return "written for AdamW";
    if (tensors * size > 2 ** 21) return "too slow to be of interest at this size";
    const gradient = gradients(size);
    const all = Array.from({ length: tensors }, () => ({
      p: firstParameters(size),
      m: new Float32Array(size),
      v: new Float32Array(size),
    }));
    let t = 0;
    const step = () => {
      t++;
      const stepSize = 1e-3 / (1 - 0.9 ** t);
      const correction = Math.sqrt(1 - 0.999 ** t);
      for (const { p, m, v } of all) {
        for (let i = 0; i < size; i++) {
          const g = gradient[i]!;
          m[i] = m[i]! + 0.1 * (g - m[i]!);
          v[i] = 0.999 * v[i]! + 0.001 * g * g;
          p[i] = p[i]! * (1 - 1e-5) - (stepSize * m[i]!) / (Math.sqrt(v[i]!) / correction + 1e-8);
        }
      }
    };
    return {
      run: (steps) => timed(steps, step),
      result: async (count) => [...all[0]!.p.subarray(0, count)],
      async close() {},
    };
  },
};
