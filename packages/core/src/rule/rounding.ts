/** Stochastic rounding to 16 bits. The random bits depend on the element and the step only, on every device. */
import { fromStored } from "../values/half";
import type { RandomDType, StoredFormats, UpdateArrays } from "./stored";

/** Odd factors, modulo 2^32. Source: the first two are those of lowbias32 (hash-prospector), the last is 2^32 by the golden ratio. */
export const DRAW_FACTORS = { first: 0x7feb352d, second: 0x846ca68b, parameter: 0x9e3779b9 } as const;

const { first, second, parameter } = DRAW_FACTORS;

/** A formats' random form has one more letter. */
export function isRandom(format: string | undefined): format is RandomDType {
  return format === "bf16r" || format === "f16r";
}

/** How the elements lie, however they are rounded. */
export function withoutDraws(format: RandomDType): "bf16" | "f16" {
  return format === "bf16r" ? "bf16" : "f16";
}

/**
 * 16 random bits of element `i` from a place on. The place of element i of parameter p is p 2^32 + i; by keys of 24 bits, modulo 2^32:
 *
 *     x = i + key[0]      x = (x ^ x >> 16) first      x = (x ^ x >> 15) + key[1] + p parameter      x = (x ^ x >> 15) second
 *
 * of which the upper half counts.
 */
export function drawOf(place: number, i: number, keys: readonly number[]): number {
  let x = (place % 2 ** 32) + i + keys[0]!;
  x = Math.imul(x ^ (x >>> 16), first);
  x = (x ^ (x >>> 15)) + keys[1]! + Math.imul(Math.floor(place / 2 ** 32), parameter);
  return Math.imul(x ^ (x >>> 15), second) >>> 16;
}

/** lowbias32. */
function mixed(x: number): number {
  const y = Math.imul(x ^ (x >>> 16), first);
  const z = Math.imul(y ^ (y >>> 15), second);
  return (z ^ (z >>> 16)) >>> 0;
}

/** The keys of a step: two whole numbers that float32 holds. */
export function keysOf(seed: number, step: number): [number, number] {
  const x = mixed(mixed(mixed(seed % 2 ** 32) + Math.floor(seed / 2 ** 32)) + step);
  return [x >>> 8, mixed(x ^ parameter) >>> 8];
}

const view = new DataView(new ArrayBuffer(4));

/**
 * The stored bits of a float32 by a draw: up with the probability of its distance from below, in 2^16 parts of the gap. What 16 bits hold
 * stays; what is above their largest number becomes it or infinity.
 */
export const ROUND: Readonly<Record<RandomDType, (value: number, draw: number) => number>> = {
  bf16r(value, draw) {
    view.setFloat32(0, value);
    const bits = view.getUint32(0);
    return Number.isNaN(value) ? (bits >>> 16) | 0x40 : (bits + draw) >>> 16;
  },
  f16r(value, draw) {
    view.setFloat32(0, value);
    const bits = view.getUint32(0);
    const [sign, magnitude] = [(bits >>> 16) & 0x8000, bits & 0x7fffffff];
    if (Number.isNaN(value)) return sign | 0x7e00;
    if (magnitude >= 0x47800000) return sign | 0x7c00; // 2^16
    // In 2^-16 parts of the gap: of normals, and of what is below 2^-14.
    const parts = magnitude < 0x38800000 ? Math.trunc(Math.abs(value) * 2 ** 40) : (magnitude - 0x38000000) << 3;
    return sign | ((parts + draw) >>> 16);
  },
};

/** The update of arrays with stochastic rounding of the first, from that of float32; undefined for other formats. */
export function randomUpdate(
  stored: StoredFormats,
  make: (stored: StoredFormats) => UpdateArrays,
): UpdateArrays | undefined {
  const [format] = stored;
  if (!isRandom(format)) return undefined;
  const update = make(stored.with(0, "f32"));
  const [read, round] = [fromStored(withoutDraws(format)), ROUND[format]];
  return (buffers, scalars, place = 0) => {
    const [param, ...others] = buffers as [Uint16Array, ...Uint16Array[]];
    const values = Float32Array.from(param, read);
    const keys = scalars.slice(-2);
    update([values, ...others], scalars.slice(0, -2));
    for (let i = 0; i < values.length; i++) param[i] = round(values[i]!, drawOf(place, i, keys));
  };
}
