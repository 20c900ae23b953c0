/** How the invocations of a row share their results: through workgroup memory, by subgroups, or not at all where each has a row. */
import { LANES } from "./shader";

/** NaN by its bits: comparisons may be folded away where NaN is assumed not to occur. */
export const IS_NAN = "fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }";

/** The larger number; a NaN wins. */
export const LARGER = "fn larger(a: f32, b: f32) -> f32 { return select(a, b, !is_nan(a) && (b > a || is_nan(b))); }";

const SHARED = `var<workgroup> shared_values: array<f32, ${LANES}>;`;

function tree(name: string, combined: (a: string, b: string) => string): string {
  return `
fn ${name}(value: f32, lane: u32) -> f32 {
  workgroupBarrier();
  shared_values[lane] = value;
  for (var width = ${LANES / 2}u; width > 0u; width >>= 1u) {
    workgroupBarrier();
    if (lane < width) { shared_values[lane] = ${combined("shared_values[lane]", "shared_values[lane + width]")}; }
  }
  workgroupBarrier();
  return shared_values[0];
}`;
}

const SUBGROUP_SUM = `
fn sum_of_lanes(value: f32, lane: u32) -> f32 {
  let part = subgroupAdd(value);
  workgroupBarrier();
  if (subgroupElect()) { shared_values[subgroup] = part; }
  workgroupBarrier();
  var sum = 0f;
  for (var k = 0u; k < subgroups; k++) { sum += shared_values[k]; }
  return sum;
}`;

/** `sum_of_lanes(value, lane)`: of the whole workgroup, in every invocation; the value itself if each has a row of its own. */
export function sumOfLanes(lanes: number, subgroups: boolean): string {
  if (lanes === 1) return "fn sum_of_lanes(value: f32, lane: u32) -> f32 { return value; }";
  return subgroups ? SUBGROUP_SUM : tree("sum_of_lanes", (a, b) => `${a} + ${b}`);
}

/** `largest_of_lanes(value, lane)`, likewise. */
export function largestOfLanes(lanes: number): string {
  if (lanes === 1) return "fn largest_of_lanes(value: f32, lane: u32) -> f32 { return value; }";
  return tree("largest_of_lanes", (a, b) => `larger(${a}, ${b})`);
}

/** The memory that the functions above share. */
export function sharedValues(lanes: number): string {
  return lanes === 1 ? "" : SHARED;
}
