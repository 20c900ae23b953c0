/** Parameters that are rounded at random, as WGSL: 16 bits for each element (core's rule/rounding.ts). */
import { DRAW_FACTORS, type RandomDType, type Slice } from "@opt/core/backend";

/** Members of `params`: the keys of the step, below 2^24. */
export const KEYS = ["first_key", "second_key"] as const;

const { first, second, parameter } = DRAW_FACTORS;

/** 16 random bits of element `i` from `place` on. */
export const DRAW_OF = `
fn draw_of(i: u32, place: u32, parameter: u32) -> u32 {
  var x = i + place + u32(params.first_key);
  x = (x ^ (x >> 16u)) * ${first}u;
  x = (x ^ (x >> 15u)) + u32(params.second_key) + parameter;
  return ((x ^ (x >> 15u)) * ${second}u) >> 16u;
}`.trim();

/** The bits of a value that element `i` takes, of which `extra` were in earlier pieces. `slots`: buffers of the launch, after which the words of `wordsOfPlace` come in the table. */
export function roundedAtRandom(format: RandomDType, value: string, slots: number): string {
  const draw = `draw_of(i + extra, at${slots}, at${slots + 1})`;
  return `${format === "bf16r" ? "to_bfloat_by" : "to_half_by"}(${value}, ${draw})`;
}

/** Further words of a tensor's entry: the place of its first element, and what its parameter adds. */
export function wordsOfPlace({ place = 0 }: Slice): readonly number[] {
  return [place % 2 ** 32, Math.imul(Math.floor(place / 2 ** 32), parameter) >>> 0];
}
