/** Cosines and sines of parts of a turn, of additions and products only: Math.cos differs between engines. */

/** Of fdlibm, for angles up to an eighth of a turn. */
const SINE = [-1.66666666666666324348e-1, 8.33333333332248946124e-3, -1.98412698298579493134e-4, 2.75573137070700676789e-6, -2.50507602534068634195e-8, 1.58969099521155010221e-10];
const COSINE = [4.16666666666666019037e-2, -1.38888888888741095749e-3, 2.48015872894767294178e-5, -2.75573143513906633035e-7, 2.08757232129817482790e-9, -1.13596475577881948265e-11];

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
export function turns(count: number, n: number): { cosines: Float64Array; sines: Float64Array } {
  const [cosines, sines] = [new Float64Array(count), new Float64Array(count)];
  for (let k = 0; k < count; k++) [cosines[k], sines[k]] = turn(k, n) as [number, number];
  return { cosines, sines };
}
