/** Copies: every pair of dtypes, and strides that transpose, slice, place and reverse. */
import { byteSize, type ComputeDType, type DType, type TypedArray, viewElements } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { seededArray } from "../numbers/seeded";
import { type NarrowFloat, narrowFloatBits, narrowFloatValue } from "../reference/narrow-floats";
import { type ContractContext, LARGE, SIZES } from "./context";
import "../numbers/matcher";

const DTYPES: readonly DType[] = ["f32", "f64", "f16", "bf16", "i32", "u8", "bool"];

const isNarrow = (dtype: DType): dtype is NarrowFloat => dtype === "f16" || dtype === "bf16";
const numberOf = (stored: number, dtype: DType) => (isNarrow(dtype) ? narrowFloatValue(stored, dtype) : stored);

/** The stored element that a value becomes. */
function cast(value: number, to: DType): number {
  const whole = (low: number, high: number) =>
    Number.isNaN(value) ? 0 : Math.max(low, Math.min(high, Math.trunc(value)));
  switch (to) {
    case "f16":
    case "bf16":
      return narrowFloatBits(value, to);
    case "f32":
      return Math.fround(value);
    case "f64":
      return value;
    case "i32":
      return whole(-(2 ** 31), 2 ** 31 - 1);
    case "u8":
      return whole(0, 255);
    case "bool":
      return value !== 0 ? 1 : 0;
  }
}

const zeros = (size: number, dtype: DType) => viewElements(new ArrayBuffer(size * byteSize(dtype)), 0, size, dtype);

/** Elements as numbers, so that NaN equals NaN in f16 and bf16 too. */
function values(array: ArrayLike<number>, dtype: DType): Float64Array {
  return new Float64Array(array).map((stored) => numberOf(stored, dtype));
}

interface Walk {
  readonly name: string;
  readonly shape: readonly number[];
  readonly sourceStrides: readonly number[];
  readonly targetStrides: readonly number[];
  /** Element of the source region that (0, 0, ...) reads, and of the target region that it writes. */
  readonly sourceStart?: number;
  readonly targetStart?: number;
}

const WALKS: readonly Walk[] = [
  { name: "transposes", shape: [17, 31], sourceStrides: [1, 17], targetStrides: [31, 1] },
  { name: "permutes", shape: [3, 4, 5, 6], sourceStrides: [6, 90, 18, 1], targetStrides: [120, 30, 6, 1] },
  { name: "slices", shape: [4, 3], sourceStrides: [10, 1], targetStrides: [3, 1], sourceStart: 12 },
  { name: "takes every third", shape: [50], sourceStrides: [3], targetStrides: [1], sourceStart: 1 },
  { name: "places into a larger tensor", shape: [4, 3], sourceStrides: [3, 1], targetStrides: [11, 1], targetStart: 5 },
  { name: "writes every second", shape: [33], sourceStrides: [1], targetStrides: [2] },
  { name: "repeats", shape: [7, 5], sourceStrides: [0, 1], targetStrides: [5, 1] },
  { name: "fills", shape: [1027], sourceStrides: [0], targetStrides: [1] },
  { name: "reverses", shape: [19], sourceStrides: [-1], targetStrides: [1], sourceStart: 18 },
  { name: "flips rows", shape: [5, 7], sourceStrides: [-7, 1], targetStrides: [7, 1], sourceStart: 28 },
  { name: "copies one element", shape: [1], sourceStrides: [1], targetStrides: [1] },
  { name: "copies nothing", shape: [3, 0], sourceStrides: [1, 1], targetStrides: [1, 1] },
];

const LARGE_WALKS: readonly Walk[] = [
  { name: "transposes a large matrix", shape: [259, 257], sourceStrides: [1, 259], targetStrides: [257, 1] },
  { name: "copies many rows", shape: [LARGE, 2], sourceStrides: [3, 1], targetStrides: [2, 1] },
];

/** Every offset from `start` that the strides reach, in row-major order. */
function offsets(shape: readonly number[], strides: readonly number[], start = 0): number[] {
  let all = [start];
  for (const [axis, length] of shape.entries()) {
    const next: number[] = [];
    for (const at of all) for (let i = 0; i < length; i++) next.push(at + i * strides[axis]!);
    all = next;
  }
  return all;
}

export function copyContract(context: ContractContext): void {
  const { specials, dtype: compute } = context;
  const pairs = DTYPES.flatMap((from) => DTYPES.map((to) => ({ from, to })));
  const shown = pairs.filter(({ from, to }) => belongsTo(compute, from, to));

  describe("copy", () => {
    it.each(context.cases(shown))("casts $from to $to", async ({ from, to }) => {
      for (const size of SIZES) {
        const source = seededArray(from, size, { seed: size, specials });
        confine(source, from, to);
        const expected = values(source, from).map((value) => numberOf(cast(value, to), to));
        await context.check(
          { kind: "copy", from, to },
          { input: { source }, output: { target: zeros(size, to) } },
          (slices) => ({ ...slices, shape: [size], sourceStrides: [1], targetStrides: [1] }),
          ({ target }, label) => {
            const result = values(target, to);
            expect(result, `${size} elements, ${label}`).toAgreeWith(expected, from === to ? "bits" : { ulp: 0 });
          },
        );
      }
    });

    describe.each(strideDtypes(compute))("of $from to $to", ({ from, to }) => {
      it.each(context.cases(from === compute ? [...WALKS, ...LARGE_WALKS] : WALKS))(
        "$name",
        async ({ shape, sourceStrides, targetStrides, sourceStart = 0, targetStart = 0 }) => {
          const sourceAt = offsets(shape, sourceStrides, sourceStart);
          const targetAt = offsets(shape, targetStrides, targetStart);
          const largest = (list: readonly number[]) => list.reduce((a, b) => Math.max(a, b), -1) + 1;
          const source = seededArray(from, largest(sourceAt), { seed: 9 });
          const target = seededArray(to, largest(targetAt), { seed: 10 });
          const expected = target.slice();
          sourceAt.forEach((at, i) => {
            expected[targetAt[i]!] = cast(numberOf(source[at]!, from), to);
          });
          await context.check(
            { kind: "copy", from, to },
            { input: { source }, update: { target } },
            (slices) => ({
              source: shifted(slices.source, sourceStart, from),
              target: shifted(slices.target, targetStart, to),
              shape,
              sourceStrides,
              targetStrides,
            }),
            (results, label) => expect(values(results.target, to), label).toAgreeWith(values(expected, to)),
          );
        },
      );
    });
  });
}

/** Each pair is tried once: those with f64 under f64, all others under f32. */
function belongsTo(compute: ComputeDType, from: DType, to: DType): boolean {
  return (from === "f64" || to === "f64") === (compute === "f64");
}

function strideDtypes(compute: ComputeDType): { from: DType; to: DType }[] {
  if (compute === "f64") return [{ from: "f64", to: "f64" }];
  return [
    { from: "f32", to: "f32" },
    { from: "i32", to: "i32" },
    { from: "u8", to: "u8" },
    { from: "bf16", to: "f32" },
    { from: "f32", to: "f16" },
  ];
}

/** Leaves out what the contract leaves open: float64 that float32 would round first, and integers that do not fit u8. */
function confine(source: TypedArray, from: DType, to: DType): void {
  if (from === "f64" && isNarrow(to))
    source.forEach((x, i) => {
      source[i] = Math.fround(x);
    });
  if (from === "i32" && to === "u8")
    source.forEach((x, i) => {
      source[i] = x & 0xff;
    });
}

/** A slice from element `start` of the region on. Strides reach elements before it when they are negative. */
function shifted<S extends { readonly byteOffset: number; readonly length: number }>(
  slice: S,
  start: number,
  dtype: DType,
): S {
  return { ...slice, byteOffset: slice.byteOffset + start * byteSize(dtype), length: slice.length - start };
}
