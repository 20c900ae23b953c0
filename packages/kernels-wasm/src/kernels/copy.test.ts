import type { DType, TypedArray } from "@opt/core/backend";
import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { copy, dimensionsOf } from "./copy";
import { input, output, runKernel, seeded } from "./run-kernel";

const DTYPES: DType[] = ["f32", "f64", "f16", "bf16", "i32", "u8", "bool"];
const view = new DataView(new ArrayBuffer(4));

/** float16 by its definition: sign, 5 bits of exponent, 10 of fraction. */
function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? Number.NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

/** The nearest float16, found by search; of two equally near ones the even. */
function halfBits(x: number): number {
  if (Number.isNaN(x)) return 0x7e00;
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(x);
  let [low, high] = [0, 0x7bff];
  if (magnitude >= 65_520) return sign | 0x7c00;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (halfValue(middle) <= magnitude) low = middle;
    else high = middle;
  }
  const toLow = magnitude - halfValue(low);
  const toHigh = halfValue(high) - magnitude;
  return sign | (toLow < toHigh || (toLow === toHigh && low % 2 === 0) ? low : high);
}

function bfloatBits(x: number): number {
  view.setFloat32(0, x);
  const bits = view.getUint32(0);
  if (Number.isNaN(x)) return (bits >>> 16) | 0x40;
  const lower = bits & 0xffff;
  const upper = bits >>> 16;
  return lower > 0x8000 || (lower === 0x8000 && upper % 2 === 1) ? upper + 1 : upper;
}

function bfloatValue(bits: number): number {
  view.setUint32(0, bits << 16);
  return view.getFloat32(0);
}

function convert(from: DType, to: DType, stored: number): number {
  if (from === to) return stored;
  const x = from === "f16" ? halfValue(stored) : from === "bf16" ? bfloatValue(stored) : stored;
  if (to === "f16") return halfBits(x);
  if (to === "bf16") return bfloatBits(x);
  if (to === "bool") return x === 0 ? 0 : 1;
  const [least, most] = to === "i32" ? [-(2 ** 31), 2 ** 31 - 1] : to === "u8" ? [0, 255] : [-Infinity, Infinity];
  if (to === "i32" || to === "u8") return Number.isNaN(x) ? 0 : Math.trunc(Math.min(Math.max(x, least), most)) + 0;
  return to === "f32" ? Math.fround(x) : x;
}

const NUMBERS = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.4,
  1.5,
  2.5,
  254.9,
  255.5,
  256,
  -7.9,
  65_519.9,
  65_520,
  -65_504,
  2 ** -14,
  2 ** -24,
]
  .concat([2 ** -25, 2 ** -25 * 1.0001, 3 * 2 ** -25, 6.1e-5, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 1 + 2 ** -11 + 2 ** -40])
  .concat([
    1 + 2 ** -8,
    1 + 3 * 2 ** -8,
    2 ** 31,
    -(2 ** 31),
    2147483520,
    1e10,
    1e-40,
    1e300,
    -1e300,
    Infinity,
    -Infinity,
    NaN,
  ]);

function samples(dtype: DType): number[] {
  if (dtype === "f16" || dtype === "bf16") return Array.from({ length: 65_536 }, (_, bits) => bits);
  if (dtype === "bool") return [0, 1, 1, 0, 1];
  if (dtype === "u8") return Array.from({ length: 256 }, (_, i) => i);
  const random = [...seeded(1027, 9, "f64")].map((x, i) => x * 10 ** ((i % 40) - 20));
  const all = [...NUMBERS, ...random];
  return dtype === "i32" ? [0, 1, -1, 255, 256, -(2 ** 31), 2 ** 31 - 1, 16_777_217, 2049, 65_519] : all;
}

/** Bit patterns of halves, numbers of the rest; NaN patterns of halves count as one. */
function normalize(dtype: DType, values: ArrayLike<number>): Float64Array {
  return Float64Array.from(values, (x) => {
    if (dtype === "f16") return (x & 0x7fff) > 0x7c00 ? Number.NaN : x;
    if (dtype === "bf16") return (x & 0x7fff) > 0x7f80 ? Number.NaN : x;
    return x;
  });
}

describe.each(DTYPES)("copy from %s", (from) => {
  it.each(DTYPES)("to %s", (to) => {
    const values = samples(from);
    const source = input(from, values);
    const launch = { source, target: output(to, values.length), shape: [values.length] };
    const result = runKernel(
      copy,
      { kind: "copy", from, to },
      { ...launch, sourceStrides: [1], targetStrides: [1] },
      { parts: 3 },
    );
    const expected = Array.from(result.source!, (stored) => convert(from, to, stored));
    expect(normalize(to, result.target!)).toAgreeWith(normalize(to, expected));
  });
});

interface Layout {
  name: string;
  shape: number[];
  sourceStrides: number[];
  targetStrides: number[];
  sourceStart?: number;
}

const LAYOUTS: Layout[] = [
  { name: "nothing", shape: [3, 0, 2], sourceStrides: [1, 1, 1], targetStrides: [1, 1, 1] },
  { name: "a scalar", shape: [], sourceStrides: [], targetStrides: [] },
  { name: "rows of a wider matrix", shape: [5, 17], sourceStrides: [40, 1], targetStrides: [17, 1] },
  { name: "long rows into a wider matrix", shape: [3, 1027], sourceStrides: [1027, 1], targetStrides: [2000, 1] },
  { name: "a small transpose", shape: [3, 5], sourceStrides: [1, 3], targetStrides: [5, 1] },
  { name: "a transpose", shape: [33, 70], sourceStrides: [1, 33], targetStrides: [70, 1] },
  { name: "a large transpose", shape: [1027, 65], sourceStrides: [1, 1027], targetStrides: [65, 1] },
  { name: "heads first", shape: [2, 3, 17, 8], sourceStrides: [408, 8, 24, 1], targetStrides: [408, 136, 8, 1] },
  {
    name: "batches of transposes",
    shape: [4, 9, 6, 20],
    sourceStrides: [1080, 1, 9, 54],
    targetStrides: [1080, 120, 20, 1],
  },
  { name: "every third, reversed", shape: [400], sourceStrides: [-3], targetStrides: [1], sourceStart: 1197 },
  { name: "a broadcast", shape: [7, 300], sourceStrides: [0, 1], targetStrides: [300, 1] },
  { name: "a broadcast of columns", shape: [300, 7], sourceStrides: [1, 0], targetStrides: [7, 1] },
  { name: "into strides", shape: [30, 20], sourceStrides: [20, 1], targetStrides: [2, 60] },
  { name: "more than 65,535 rows", shape: [70_000, 3], sourceStrides: [5, 1], targetStrides: [3, 1] },
];

function reach(
  shape: readonly number[],
  strides: readonly number[],
  visit: (offset: number, index: number) => void,
): void {
  const count = shape.reduce((product, extent) => product * extent, 1);
  for (let index = 0; index < count; index++) {
    let rest = index;
    let offset = 0;
    for (let d = shape.length - 1; d >= 0; d--) {
      offset += (rest % shape[d]!) * strides[d]!;
      rest = Math.floor(rest / shape[d]!);
    }
    visit(offset, index);
  }
}

describe.each([
  ["f32", "f32"],
  ["f64", "f64"],
  ["u8", "u8"],
  ["f16", "f32"],
  ["i32", "f64"],
] as [DType, DType][])("copy %s to %s by strides", (from, to) => {
  it.each(LAYOUTS)("$name", ({ shape, sourceStrides, targetStrides, sourceStart = 0 }) => {
    let [most, targetMost] = [0, 0];
    reach(shape, sourceStrides, (offset) => (most = Math.max(most, sourceStart + offset)));
    reach(shape, targetStrides, (offset) => (targetMost = Math.max(targetMost, offset)));
    const data = Array.from({ length: most + 1 }, (_, i) => (i * 7919) % 251);
    const expected: TypedArray = runKernel(
      copy,
      { kind: "copy", from, to },
      {
        ...{ source: input(from, []), target: output(to, targetMost + 1), shape: [0] },
        ...{ sourceStrides: [1], targetStrides: [1] },
      },
    ).target!;
    const fromAt: number[] = [];
    reach(shape, sourceStrides, (offset, index) => (fromAt[index] = sourceStart + offset));
    reach(shape, targetStrides, (offset, index) => (expected[offset] = convert(from, to, data[fromAt[index]!]!)));
    for (const parts of [1, 3]) {
      const source = { ...input(from, data), start: sourceStart };
      const launch = { source, target: output(to, targetMost + 1), shape, sourceStrides, targetStrides };
      expect(runKernel(copy, { kind: "copy", from, to }, launch, { parts }).target).toAgreeWith(expected);
    }
  });
});

it("merges dimensions that go on evenly, whatever their order", () => {
  const merged = dimensionsOf({ shape: [2, 3, 4], sourceStrides: [12, 4, 1], targetStrides: [12, 4, 1] } as never);
  expect(merged).toEqual([{ extent: 24, source: 1, target: 1 }]);
  const transposed = dimensionsOf({
    shape: [4, 2, 3],
    sourceStrides: [1, 12, 4],
    targetStrides: [6, 3, 1],
  } as never);
  expect(transposed).toEqual([
    { extent: 6, source: 4, target: 1 },
    { extent: 4, source: 1, target: 6 },
  ]);
});
