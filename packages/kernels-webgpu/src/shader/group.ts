/** How the invocations of a row share their results: through workgroup memory, by subgroups, or not at all where each has a row. */
import { indent, type MapDType } from "@opt/core/backend";
import { LANES } from "./shader";

/** NaN by its bits: comparisons may be folded away where NaN is assumed not to occur. */
export const IS_NAN = "fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }";

/** What shaders compute in: numbers, or integers where a kernel is of those. */
export type SharedDType = "f32" | "i32";

/** The backend lists no other dtype. */
export const sharedDType = (dtype: MapDType): SharedDType => (dtype === "i32" ? "i32" : "f32");

/** The larger number; a NaN wins. */
export const LARGER: Readonly<Record<SharedDType, string>> = {
  f32: "fn larger(a: f32, b: f32) -> f32 { return select(a, b, !is_nan(a) && (b > a || is_nan(b))); }",
  i32: "fn larger(a: i32, b: i32) -> i32 { return max(a, b); }",
};

function tree(name: string, type: SharedDType, combined: (a: string, b: string) => string): string {
  return `
fn ${name}(value: ${type}, lane: u32) -> ${type} {
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

const subgroupSum = (type: SharedDType) => `
fn sum_of_lanes(value: ${type}, lane: u32) -> ${type} {
  let part = subgroupAdd(value);
  workgroupBarrier();
  if (subgroupElect()) { shared_values[subgroup] = part; }
  workgroupBarrier();
  var sum = ${type}(0);
  for (var k = 0u; k < subgroups; k++) { sum += shared_values[k]; }
  return sum;
}`;

/** `sum_of_lanes(value, lane)`: of the whole workgroup, in every invocation; the value itself if each has a row of its own. */
export function sumOfLanes(lanes: number, subgroups: boolean, type: SharedDType = "f32"): string {
  if (lanes === 1) return `fn sum_of_lanes(value: ${type}, lane: u32) -> ${type} { return value; }`;
  return subgroups ? subgroupSum(type) : tree("sum_of_lanes", type, (a, b) => `${a} + ${b}`);
}

/** `largest_of_lanes(value, lane)`, likewise. */
export function largestOfLanes(lanes: number, type: SharedDType = "f32"): string {
  if (lanes === 1) return `fn largest_of_lanes(value: ${type}, lane: u32) -> ${type} { return value; }`;
  return tree("largest_of_lanes", type, (a, b) => `larger(${a}, ${b})`);
}

/** Terms that are added one after the other, and sums of those: rounding errors hardly grow with the number of terms. */
const TURNS = [8, 512] as const;

interface Steps {
  readonly index: string;
  readonly start: string;
  readonly end: string;
  readonly step: string;
  readonly type?: SharedDType;
}

/** Adds `term` for each `index` from `start` below `end` to the variable `sum`, in turns. */
export function sumInTurns(sum: string, steps: Steps, lines: readonly string[], term: string): string[] {
  const { index, start, end, step, type = "f32" } = steps;
  const [few, many] = TURNS;
  return [
    `for (var ${index} = ${start}; ${index} < ${end};) {`,
    `  var of_many = ${type}(0);`,
    `  let many = min(${end} - ${index}, ${many}u * ${step}) + ${index};`,
    `  while (${index} < many) {`,
    `    var of_few = ${type}(0);`,
    `    let few = min(many - ${index}, ${few}u * ${step}) + ${index};`,
    `    for (; ${index} < few; ${index} += ${step}) {`,
    ...indent([...lines, `of_few += ${term};`], 6),
    "    }",
    "    of_many += of_few;",
    "  }",
    `  ${sum} += of_many;`,
    "}",
  ];
}

/** The memory that the functions above share. */
export function sharedValues(lanes: number, type: SharedDType = "f32"): string {
  return lanes === 1 ? "" : `var<workgroup> shared_values: array<${type}, ${LANES}>;`;
}
