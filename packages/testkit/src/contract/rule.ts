/** Rules: the bits of the interpreter, over lists of tensors of different sizes. */
import { enableQ8, enableStochasticRounding } from "@opt/core";
import {
  type CodedDType,
  codebookOf,
  interpretRule,
  isPacked,
  isRandom,
  PACKED_BLOCK,
  type PackedDType,
  packedBytes,
  type RandomDType,
  type Rewrite,
  type Rule,
  rewritten,
  type StoredDType,
  type StoredFormats,
  type TypedArray,
  withoutDraws,
} from "@opt/core/backend";
import { coreRules } from "@opt/core/rules";
import { describe, expect, it } from "vitest";
import { Random } from "../numbers/random";
import { type SeededOptions, seededArray, seededBuffers, seededScalars } from "../numbers/seeded";
import { SPECIALS } from "../numbers/specials";
import { narrowFloatBits, narrowFloatValue } from "../reference/narrow-floats";
import { type ContractContext, LARGE, SIZES } from "./context";
import type { Regions } from "./guarded-launch";
import { BUILTIN_RULES } from "./rules";
import "../numbers/matcher";

export function ruleContract(context: ContractContext): void {
  enableQ8();
  enableStochasticRounding();
  const { dtype, specials, rules, tolerances } = context;

  /** One launch over tensors of the given sizes. */
  async function checkRule(
    rule: Rule,
    sizes: readonly number[],
    scalars: readonly number[],
    seed: number,
    stored?: StoredFormats,
    onDevice: readonly number[] = [],
  ) {
    const names = stored?.length === rule.buffers.length + 1 ? [...rule.buffers, "mirror"] : rule.buffers;
    const isDrawn = isRandom(stored?.[0]);
    const placeOf = (t: number) => PLACES[t % PLACES.length]!;
    const tensors = sizes.map((size, t) =>
      stored === undefined
        ? seededBuffers(rule, { size, seed: seed + t, dtype, specials })
        : stored.map((format, slot) => seededStored(format, size, { seed: (seed + t) * 64 + slot, specials })),
    );
    // A mirror is what the first buffer rounds to: a guard may leave it alone.
    if (stored !== undefined && names.length > rule.buffers.length) {
      const format = stored.at(-1) as StoredDType;
      for (const buffers of tensors) {
        const mirror = buffers.at(-1)!;
        numbers(buffers[0]!, stored[0]!).forEach((value, i) => {
          mirror[i] = format === "f32" ? value : narrowFloatBits(value, format);
        });
      }
    }
    const input: Record<string, TypedArray> = {};
    const update: Record<string, TypedArray> = {};
    const key = (t: number, slot: number) => `${names[slot]} of tensor ${t}`;
    const lengths = Object.fromEntries(
      sizes.flatMap((size, t) =>
        (stored ?? []).flatMap((format, slot) => (isPacked(format) ? [[key(t, slot), size]] : [])),
      ),
    );
    const regions: Regions = { input, update, lengths };
    const isWritten = (slot: number) => slot === rule.buffers.length || rule.writes.includes(rule.buffers[slot]!);
    tensors.forEach((buffers, t) => {
      buffers.forEach((array, slot) => {
        (isWritten(slot) ? update : input)[key(t, slot)] = array;
      });
    });
    for (const s of onDevice)
      input[`scalar ${s}`] = dtype === "f64" ? Float64Array.of(scalars[s]!) : Float32Array.of(scalars[s]!);
    await context.check(
      { kind: "rule", rule, dtype, ...(stored && { stored }) },
      regions,
      (slices) => ({
        tensors: tensors.map((buffers, t) =>
          buffers.map((_, slot) => ({ ...slices[key(t, slot)]!, ...(slot === 0 && { place: placeOf(t) }) })),
        ),
        scalars: [...scalars.map((scalar, s) => slices[`scalar ${s}`] ?? scalar), ...(isDrawn ? KEYS : [])],
      }),
      (results, label) => {
        tensors.forEach((buffers, t) => {
          const expected = buffers.map((array) => array.slice());
          interpretRule(rule.program, dtype, expected, isDrawn ? [...scalars, ...KEYS] : scalars, stored, placeOf(t));
          expected.forEach((array, slot) => {
            const result = results[key(t, slot)];
            if (result === undefined) return;
            const format = stored?.[slot] ?? dtype;
            const words = [result, array].map((each) => numbers(each, format, sizes[t]!)) as [TypedArray, TypedArray];
            if (isPacked(format) && tolerances.rule === "bits") expect(result).toAgreeWith(array);
            expect(words[0], `${key(t, slot)} (${array.length}), ${label}`).toAgreeWith(words[1], toleranceOf(format));
          });
        });
      },
    );
  }

  /** What is off by a rounding in float32 may round to the next element of 16 bits. */
  function toleranceOf(stored: StoredFormats[number] | "f64") {
    const format = isRandom(stored) ? withoutDraws(stored) : stored;
    if (isPacked(format) && format !== "bf16x")
      return tolerances.rule === "bits" ? "bits" : { absolute: 0.25, relative: 0 };
    const unit = { f32: 0, f64: 0, f16: 2 ** -10, bf16: 2 ** -7, bf16x: 2 ** -15 }[format];
    return tolerances.rule === "bits" || unit === 0 ? tolerances.rule : { absolute: 1e-6, relative: unit };
  }

  /** 16-bit training (a float32 master, its mirror, the gradient as it comes), states in 16 bits, and everything mixed. */
  function checkFormats(rule: Rule): void {
    if (dtype !== "f32") return;
    const hasMirror = rule.writes.includes(rule.buffers[0]!);
    const mixes: readonly ((slot: number) => StoredFormats[number])[] = [
      (slot) => (slot === 1 || slot === rule.buffers.length ? "bf16" : "f32"),
      (slot) => (slot === 1 || slot === rule.buffers.length ? "f16" : "f32"),
      (slot) => (["f16", "f32", "bf16"] as const)[slot % 3]!,
      (slot) => (["bf16", "f16"] as const)[slot % 2]!,
      (slot) => (slot < 2 ? "f32" : slot === rule.buffers.length ? "bf16" : slot % 2 === 0 ? "q8" : "uq8"),
      (slot) => (slot === 1 || slot === rule.buffers.length ? "bf16" : slot > 2 ? "uq8" : "f32"),
      (slot) => (slot < 2 ? "f32" : slot === rule.buffers.length ? "bf16" : "bf16x"),
      (slot) => (["f32", "bf16", "bf16x", "q8"] as const)[slot % 4]!,
    ];
    const drawn: readonly ((slot: number) => StoredFormats[number])[] = [
      (slot) => (["bf16r", "bf16"] as const)[slot] ?? "f32",
      (slot) => (["f16r", "f16"] as const)[slot] ?? "bf16",
      (slot) => (["bf16r", "bf16"] as const)[slot] ?? (slot % 2 === 0 ? "q8" : "uq8"),
      (slot) => (["f16r", "f32"] as const)[slot] ?? "uq8",
      (slot) => (["bf16r", "f32"] as const)[slot] ?? "bf16x",
    ];
    if (hasMirror) {
      it.each(context.sample(drawn).map((mix) => rule.buffers.map((_, slot) => mix(slot))))(
        "rounded at random as %s, %s, %s, %s, ...",
        async (...stored) => checkRule(rule, [...SIZES, 1, 64, 0, 259], seededScalars(rule, 90), 100, stored),
      );
    }
    it.each(
      context
        .sample(mixes)
        .map((mix) => Array.from({ length: rule.buffers.length + (hasMirror ? 1 : 0) }, (_, slot) => mix(slot))),
    )("stored as %s, %s, %s, %s, ...", async (...stored) => {
      await checkRule(rule, [...SIZES, 1, 64, 0, 259], seededScalars(rule, 90), 100, stored);
      if (hasMirror) await checkRule(rule, [31], seededScalars(rule, 91), 130, stored.slice(0, -1));
    });
  }

  /** Packed and unpacked: what lies at the edges between codes, of every magnitude, with scales of both signs. */
  async function checkCodes(format: CodedDType) {
    const { edges, values: known } = codebookOf(format);
    const random = new Random(7);
    const sorted = known.toSorted();
    const middles = sorted.subarray(1).map((value, i) => (value + sorted[i]!) / 2);
    const near = [...edges, ...known, ...middles];
    const list = near.flatMap((x) => [-3, -2, -1, 0, 1, 2, 3].map((ulps) => neighbour(x, ulps)));
    list.push(...new Float32Array(Uint32Array.from({ length: 20_000 }, (_, i) => 0x30000000 + 12_983 * i).buffer));
    for (let i = 0; i < 20_000; i++) list.push(random.normal() * random.uniform() ** random.below(9));
    const numbers = Float32Array.from(list);
    // One of each block is its scale.
    for (let i = 0; i < list.length; i += PACKED_BLOCK) numbers[i] = SCALES[(i / PACKED_BLOCK) % SCALES.length]!;
    await checkPacked(format, numbers);
  }

  /** Each place that 24 bits round to, of every exponent: below, at and above the middle, and what is no number. */
  async function checkCorrected() {
    const words = Uint32Array.from({ length: 60_000 }, (_, i) => {
      const tail = [0, 1, 0x7f, 0x80, 0x81, 0xff, 0x17f, 0x180, 0x7f80, 0x8000, 0x807f, 0x8080][i % 12]!;
      return (Math.imul(i, 0x9e3779b1) & 0xffff0000) | tail;
    });
    words.set([0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x7f7fffff, 0, 0x80000000, 1, 0x80000001]);
    await checkPacked("bf16x", new Float32Array(words.buffer));
  }

  async function checkPacked(format: PackedDType, numbers: Float32Array) {
    const { length } = numbers;
    const codes = new Uint8Array(packedBytes(length, format));
    interpretRule(ruleNamed("pack").program, "f32", [numbers, codes], [], ["f32", format]);
    const values = new Float32Array(length);
    interpretRule(ruleNamed("unpack").program, "f32", [values, codes], [], ["f32", format]);
    const checkOne = (name: string, regions: Regions, expected: TypedArray) =>
      context.check(
        { kind: "rule", rule: ruleNamed(name), dtype: "f32", stored: ["f32", format] },
        { ...regions, lengths: { state: length } },
        (slices) => ({ tensors: [[slices.value!, slices.state!]], scalars: [] }),
        (results, label) => {
          const wanted = bytesOf(expected);
          const wrong = Object.values(results).map((result) =>
            bytesOf(result).findIndex((byte, i) => byte !== wanted[i]),
          );
          expect(wrong, `${name}: the first byte that differs, ${label}`).toEqual([-1]);
        },
      );
    const state = new Uint8Array(codes.length);
    await checkOne("pack", { input: { value: numbers }, update: { state } }, codes);
    await checkOne("unpack", { input: { state: codes }, update: { value: numbers } }, values);
  }

  /** What is rounded at random, by the bits of each element: of tensors that begin anywhere. */
  async function checkDraws(format: RandomDType) {
    const random = new Random(11);
    const list = Array.from({ length: 5000 }, () => random.normal() * 2 ** random.below(16) * 2 ** -random.below(28));
    const state = Float32Array.from([0, -0, 65504, 65519.9, 65536, -1e30, 2 ** -14, 2 ** -24, 0.3 * 2 ** -24, ...list]);
    const value = new Uint16Array(state.length);
    for (const place of PLACES) {
      const expected = value.slice();
      interpretRule(ruleNamed("unpack").program, "f32", [expected, state], KEYS, [format, "f32"], place);
      await context.check(
        { kind: "rule", rule: ruleNamed("unpack"), dtype: "f32", stored: [format, "f32"] },
        { input: { state }, update: { value } },
        (slices) => ({ tensors: [[{ ...slices.value!, place }, slices.state!]], scalars: KEYS }),
        (results, label) => expect(results.value, `at ${place}, ${label}`).toAgreeWith(expected),
      );
    }
  }

  function checkScalarsOfAllKinds(rule: Rule): void {
    if (rule.scalars.length === 0) return;
    context.itWithSpecials("with special scalars", async () => {
      const random = new Random(5);
      for (let round = 0; round < 8; round++) {
        const scalars = rule.scalars.map(() => random.pick(SPECIALS[dtype]));
        await checkRule(rule, [137], scalars, 60 + round);
      }
    });
  }

  /** What is done to the gradient before, by numbers and by what the device has. */
  function checkRewrites(rule: Rule): void {
    const own = seededScalars(rule, 140);
    it.each(context.sample(REWRITES))("after %j", async ({ rewrites, by }) => {
      const made = rewritten(rule, rewrites);
      const scalars = [...own, ...by];
      const device = [...scalars.keys()];
      const half = rule.buffers.map((_, slot) => (slot === 1 ? "bf16" : "f32") as StoredDType);
      await checkRule(made, [...SIZES, 300], scalars, 150);
      await checkRule(made, [5, 1027], scalars, 160, undefined, device.slice(own.length));
      await checkRule(made, [17], scalars, 170, undefined, device);
      // A mirror and a drawn format are the parameter's: the first rule of a staged optimizer does not write it.
      if (dtype !== "f32" || !rule.writes.includes(rule.buffers[0]!)) return;
      await checkRule(made, [0, 1027, 3], scalars, 180, [...half, "bf16"], device.slice(-1));
      await checkRule(made, [0, 1027, 3], scalars, 185, ["bf16r", ...half.slice(1)], device.slice(-1));
    });
  }

  function checkRowsOfAllWidths(rule: Rule): void {
    it.each([1, 3, 64])("of rows of %d of a table", async (width) => {
      await checkRows(rule, width);
      if (dtype === "f32")
        await checkRows(rule, width, ["f32", "bf16", ...rule.buffers.slice(2).map(() => "bf16" as const), "bf16"]);
    });
  }

  /** Rows of a table as tensors of their own, as row-sparse gradients step them: the others stay as they are. */
  async function checkRows(rule: Rule, width: number, stored?: readonly StoredDType[]) {
    const rows = [7, 0, 3, 8];
    const formats = stored ?? rule.buffers.map(() => dtype);
    const scalars = seededScalars(rule, 190);
    const tables = formats.map((format, slot) =>
      seededArray(format, (slot === 1 ? rows.length : 9) * width, { seed: 200 + slot, specials: false }),
    );
    const input: Record<string, TypedArray> = { 1: tables[1]! };
    const { 1: _, ...update } = Object.fromEntries(tables.entries()) as Record<string, TypedArray>;
    const starts = rows.map((row, i) => formats.map((_, slot) => (slot === 1 ? i : row) * width));
    await context.check(
      { kind: "rule", rule, dtype, ...(stored && { stored }) },
      { input, update },
      (slices) => ({
        tensors: starts.map((start) =>
          start.map((first, slot) => {
            const { memory, byteOffset } = slices[slot]!;
            return { memory, byteOffset: byteOffset + first * tables[slot]!.BYTES_PER_ELEMENT, length: width };
          }),
        ),
        scalars,
      }),
      (results, label) => {
        const expected = tables.map((table) => table.slice());
        for (const start of starts) {
          const row = expected.map((table, slot) => table.subarray(start[slot]!, start[slot]! + width));
          interpretRule(rule.program, dtype, row, scalars, stored);
        }
        for (const slot of Object.keys(update).map(Number)) {
          const [actual, wanted] = [results[slot]!, expected[slot]!].map((array) => numbers(array, formats[slot]!));
          expect(actual, `${formats[slot]} ${slot}, ${label}`).toAgreeWith(wanted!, toleranceOf(formats[slot]!));
        }
      },
    );
  }

  for (const format of dtype === "f32" ? (["q8", "uq8"] as const) : []) {
    context.itWithSpecials(`rules pack ${format} in the interpreter's codes`, () => checkCodes(format));
  }
  if (dtype === "f32") context.itWithSpecials("rules pack bf16x in the interpreter's bits", checkCorrected);
  it.each(dtype === "f32" ? (["bf16r", "f16r"] as const) : [])("rules draw for each element of %s", checkDraws);

  describe.each(context.cases(BUILTIN_RULES))("rule $name", (rule) => {
    it.each(context.sample(SIZES))("of one tensor of %d", (size) =>
      checkRule(rule, [size], seededScalars(rule, 1), 10),
    );
    it("of many tensors of different sizes in one launch", async () => {
      await checkRule(rule, [...SIZES, 1, 64, 0, 256], seededScalars(rule, 2), 20);
    });
    if (context.sample(BUILTIN_RULES).includes(rule))
      it.each(context.cases([LARGE]))("of more than 65,535 elements", (size) =>
        checkRule(rule, [3, size, 1], seededScalars(rule, 3), 40),
      );
    it("of no tensors", () => checkRule(rule, [], seededScalars(rule, 4), 50));
    checkScalarsOfAllKinds(rule);
    checkFormats(rule);
    if (rule.name === "lion") checkRewrites(rule);
    if (rule.name === "lion") checkRowsOfAllWidths(rule);
  });

  describe.each(context.sample(rules))("rule $name", (rule) => {
    it("of tensors of all sizes in one launch", async () => {
      await checkRule(rule, [...SIZES, 1, 64, 0, 256], seededScalars(rule, 70), 80);
    });
    checkScalarsOfAllKinds(rule);
    if (rules.indexOf(rule) % 4 === 0) checkFormats(rule);
    if (specials && rules.indexOf(rule) % 8 === 0 && rule.buffers.length > 2) checkRewrites(rule);
  });
}

/** Numbers of tensors' first elements: also of later parameters, of parts, and across 2^32. */
const PLACES = [0, 2 ** 32, 5 * 2 ** 32 + 77, 12_345_678, 3 * 2 ** 32 - 9, 2 ** 52 + 1];
const KEYS = [0xabcdef, 0x123456];

const SCALES = [1, -1, 3.7, -2e38, 1e-20, -1e-31, 1e-32, Number.POSITIVE_INFINITY];

/** So many float32 further from zero. */
function neighbour(x: number, ulps: number): number {
  const word = new Int32Array(Float32Array.of(x).buffer);
  word[0]! += x === 0 ? 0 : ulps;
  return new Float32Array(word.buffer)[0]!;
}

function bytesOf({ buffer, byteOffset, byteLength }: TypedArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

const REWRITES: readonly { rewrites: readonly Rewrite[]; by: readonly number[] }[] = [
  { rewrites: ["scale"], by: [1 / 3] },
  { rewrites: ["scale", "scale", "clamp", "l2", "guard"], by: [0.7, 1.3, 0.4, -0.1, 0] },
  { rewrites: ["clamp", "l1"], by: [0.3, 0.2] },
  { rewrites: ["scale", "guard"], by: [2, 1] },
];

/** As stored: of packed formats numbers that were packed. */
function seededStored(format: StoredFormats[number], size: number, options: SeededOptions): TypedArray {
  if (isRandom(format)) return seededArray(withoutDraws(format), size, options);
  if (!isPacked(format)) return seededArray(format, size, options);
  const values = seededArray("f32", size, { ...options, nonNegative: format === "uq8" });
  const packed = new Uint8Array(packedBytes(size, format));
  interpretRule(ruleNamed("pack").program, "f32", [values, packed], [], ["f32", format]);
  return packed;
}

const ruleNamed = (name: string) => coreRules.find((rule) => rule.name === name)!;

/** Stored floats as numbers, so that NaN equals NaN. */
function numbers(array: TypedArray, format: StoredFormats[number] | "f64", size = array.length): TypedArray {
  if (isPacked(format)) {
    const values = new Float32Array(size);
    interpretRule(ruleNamed("unpack").program, "f32", [values, array], [], ["f32", format]);
    return values;
  }
  if (format === "f32" || format === "f64") return array;
  const dtype = isRandom(format) ? withoutDraws(format) : format;
  return Float32Array.from(array, (stored) => narrowFloatValue(stored, dtype));
}
