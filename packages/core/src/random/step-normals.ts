/** Random numbers of optimizer steps: without a state, so that a run that is resumed or compiled draws the same. */
import { boxMuller, keyOf, philox, uniformOf } from "./generator";

/**
 * Standard normal numbers that depend on the seed, the step and their place alone: four by each block of Philox with the counter
 * [place / 4, step], two words for two of them.
 */
export function normalsAt(seed: number, step: number, count: number): Float64Array {
  const values = new Float64Array(count);
  const key = keyOf(seed);
  const words = new Uint32Array(4);
  for (let i = 0; i < count; i += 4) {
    philox([(i / 4) >>> 0, Math.floor(i / 2 ** 34), step >>> 0, Math.floor(step / 2 ** 32)], key, words);
    const [a, b, c, d] = Array.from(words, uniformOf) as [number, number, number, number];
    values.set([...boxMuller(a, b), ...boxMuller(c, d)].slice(0, count - i), i);
  }
  return values;
}
