/** Packed state over many blocks on every instruction set, with 1 and 3 threads: the bytes are the interpreter's. */
import { adamRule } from "@opt/adam-amsgrad/rules";
import { enableQ8 } from "@opt/core";
import {
  interpretRule,
  packedBytes,
  type Rule,
  rewritten,
  type StoredFormats,
  type TypedArray,
} from "@opt/core/backend";
import { nadamRule } from "@opt/nadam/rules";
import { Random } from "@opt/testkit";
import { afterAll, describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";
import { loadAddon } from "./load-addon";

/** Shorter than what is under way at once, with and without a block that is cut short, and parts of several threads. */
const SIZES = [256, 600, 768, 1300, 9300];

const adamw = adamRule({ amsgrad: false, decay: "decoupled", smallBeta1: false });
const amsgrad = adamRule({ amsgrad: true, decay: "decoupled", smallBeta1: false });
const nadam = nadamRule({ decay: "l2", smallBeta1: false });

/** Scalars of a step in the middle of a training, by name; others are near 1. */
const STEP: Record<string, number> = {
  ...{ oneMinusBeta1: 0.1, beta2: 0.999, oneMinusBeta2: 0.001, negStepSize: -0.01, eps: 1e-8, decay: 0.99 },
  ...{ biasCorrection2Sqrt: 0.3, biasCorrection2: 0.1, negGradStep: -0.001, negMomentumStep: -0.009 },
};

interface Case {
  readonly title: string;
  readonly rule: Rule;
  readonly stored: StoredFormats;
  readonly scalars?: Record<string, number>;
  readonly more?: readonly number[];
}

const CASES: readonly Case[] = [
  { title: "AdamW", rule: adamw, stored: ["f32", "f32", "q8", "uq8"] },
  { title: "AMSGrad", rule: amsgrad, stored: ["f32", "f32", "q8", "uq8", "uq8"] },
  { title: "NAdam", rule: nadam, stored: ["f32", "f32", "q8", "uq8"] },
  { title: "AdamW in bf16", rule: adamw, stored: ["bf16", "bf16", "q8", "uq8"] },
  { title: "AdamW with a mirror", rule: adamw, stored: ["f32", "bf16", "q8", "uq8", "bf16"] },
  { title: "AdamW, signs the other way round", rule: adamw, stored: ["f32", "f32", "uq8", "q8"] },
  { title: "AdamW, one state packed", rule: adamw, stored: ["f32", "f32", "f32", "uq8"] },
  {
    title: "AdamW by a root that is divided",
    rule: adamw,
    stored: ["f32", "f32", "q8", "uq8"],
    scalars: { biasCorrection2Sqrt: 1e-7 },
  },
  {
    title: "AdamW after unscaling and clipping",
    rule: rewritten(adamw, ["scale", "clamp"]),
    stored: ["f32", "f32", "q8", "uq8"],
    more: [0.5, 0.2],
  },
];

/** Numbers of all magnitudes; some blocks have what is not finite, some are zeros. */
function numbersOf(size: number, random: Random): Float32Array {
  const numbers = Float32Array.from({ length: size }, () => random.normal() * 10 ** -random.below(6));
  for (let i = 300; i < size; i += 701) numbers[i] = [Number.NaN, Number.POSITIVE_INFINITY, -3e38, 1e-42][i % 4]!;
  return numbers.fill(0, 256, 300);
}

describe.skipIf(missingDevice)(`cpu rules with packed state${missingDevice ?? ""}`, () => {
  enableQ8();
  const sets = missingDevice ? [] : loadAddon().instructionSets();
  const backends = sets
    .filter((name) => name !== null)
    .flatMap((instructionSet) => [1, 3].map((threads) => openCpuBackend({ instructionSet, threads })));
  afterAll(() => {
    for (const backend of backends) backend.close();
  });

  it.each(CASES)("$title: two steps of $stored", ({ rule, stored, scalars: given, more = [] }) => {
    const own = rule.scalars.slice(0, rule.scalars.length - more.length);
    const scalars = [...own.map((name) => given?.[name] ?? STEP[name] ?? 0.9), ...more].map(Math.fround);
    const random = new Random(7);
    const start = SIZES.map((size) =>
      stored.map((format, slot): TypedArray => {
        if (format === "q8" || format === "uq8") return new Uint8Array(packedBytes(size, format));
        const values = slot === 0 || slot === 1 ? numbersOf(size, random) : new Float32Array(size);
        return format === "f32"
          ? values
          : Uint16Array.from(values, (_, i) => new Uint32Array(values.buffer)[i]! >>> 16);
      }),
    );
    const expected = start.map((buffers) => buffers.map((array) => array.slice()));
    for (let step = 0; step < 2; step++) {
      for (const buffers of expected) interpretRule(rule.program, "f32", buffers, scalars, stored);
    }
    for (const backend of backends) {
      const buffers = start.map((arrays) => arrays.map((array) => array.slice()));
      const tensors = buffers.map((arrays, t) =>
        arrays.map((array) => ({ memory: backend.wrap!(array), byteOffset: 0, length: SIZES[t]! })),
      );
      const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32", stored });
      for (let step = 0; step < 2; step++) backend.launch({ kind: "rule", kernel, tensors, scalars });
      buffers.flat().forEach((array, i) => {
        expect(array).toAgreeWith(expected.flat()[i]!);
      });
    }
  });
});
