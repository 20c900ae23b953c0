/** Cosines and sines of parts of a turn, of additions and products only: Math.cos differs between engines. */

import type { Turns } from "../../backend/host-kernels";

/** Of fdlibm, for angles up to an eighth of a turn. */
const SINE = [
  -0.16666666666666632, 0.00833333333332249, -0.0001984126982985795, 2.7557313707070068e-6, -2.5050760253406863e-8,
  1.58969099521155e-10,
];
const COSINE = [
  0.0416666666666666, -0.001388888888887411, 2.480158728947673e-5, -2.7557314351390663e-7, 2.087572321298175e-9,
  -1.1359647557788195e-11,
];

const polynomial = (coefficients: readonly number[], z: number) =>
  coefficients.reduceRight((sum, coefficient) => sum * z + coefficient, 0);

/** cos(2 pi k / n) and sin(2 pi k / n) for whole k from 0 and n. Exact at each quarter of a turn. */
export function turn(k: number, n: number): readonly [cosine: number, sine: number] {
  const eighths = (k % n) * 8;
  const octant = Math.floor(eighths / n);
  const rest = eighths - octant * n;
  const x = ((octant % 2 === 0 ? rest : n - rest) / n) * (Math.PI / 4);
  const z = x * x;
  const sine = x + x * z * polynomial(SINE, z);
  const cosine = 1 - (z / 2 - z * z * polynomial(COSINE, z));
  const [along, across] = octant % 4 === 0 || octant % 4 === 3 ? [cosine, sine] : [sine, cosine];
  return [octant > 1 && octant < 6 ? -along : along, octant < 4 ? across : -across];
}

/** turn(k, n) for k from 0 to below `count`. */
export function turns(count: number, n: number): Turns {
  const [cosines, sines] = [new Float64Array(count), new Float64Array(count)];
  for (let k = 0; k < count; k++) [cosines[k], sines[k]] = turn(k, n) as [number, number];
  return { cosines, sines };
}
