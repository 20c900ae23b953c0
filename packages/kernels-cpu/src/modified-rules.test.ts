/** Modified updates of every rule, and sums of their outcomes: computed around the kernel of the plain rule, with the interpreter's words. */
import {
  type ComputeDType,
  interpretRule,
  modifiedRule,
  movesRule,
  outcomeRule,
  type Rule,
  rewritten,
  type TypedArray,
} from "@opt/core/backend";
import { seededBuffers, seededScalars } from "@opt/testkit";
import { builtRules } from "@opt/testkit/built-rules";
import { afterAll, describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";

const PLAIN = { decay: null, cautious: false, hyperball: false, isScaled: false } as const;
const UPDATES = [
  { ...PLAIN, cautious: true },
  { ...PLAIN, decay: "cautious" },
  { ...PLAIN, decay: "independent", cautious: true, hyperball: true },
] as const;
/** More than a chunk of sums, and tails. */
const CHUNKS = [32_787, 700, 1];
const BLOCKS = [1_027, 1];

const fits = ({ buffers, writes, modified }: Rule) =>
  `${buffers}`.startsWith("param,grad") && writes.includes("param") && modified === undefined;

/** Of rules whose state does not follow the new parameter. */
function attempt(make: () => Rule): Rule | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

describe.skipIf(missingDevice)(`cpu modified rules${missingDevice ?? ""}`, () => {
  const backend = missingDevice ? undefined! : openCpuBackend({ threads: 2 });
  afterAll(() => backend?.close());

  const slice = (array: TypedArray) => ({
    memory: backend.wrap!(array),
    byteOffset: 0,
    length: array.length,
  });

  /** Tensors of a rule, and what the interpreter makes of them. */
  function interpreted(rule: Rule, dtype: ComputeDType, sizes: readonly number[], specials: boolean) {
    const scalars = seededScalars(rule, 7);
    const tensors = sizes.map((size, t) => seededBuffers(rule, { size, seed: 7 + t, dtype, specials }));
    const expected = tensors.map((buffers) => buffers.map((array) => array.slice()));
    for (const buffers of expected) interpretRule(rule.program, dtype, buffers, scalars);
    return { scalars, tensors, expected };
  }

  const rules = builtRules.filter(fits);
  it.each(rules)("of $name have the interpreter's words", (rule) => {
    const modified = UPDATES.flatMap((update) => attempt(() => modifiedRule(rule, update)) ?? []);
    const outcomes = (["way", "end"] as const).map((outcome) => attempt(() => outcomeRule(rule, UPDATES[2], outcome)));
    const all = [...modified, ...outcomes, movesRule(rule, false)].filter((each) => each !== undefined);
    for (const [k, each] of all.entries()) {
      const dtype = k % 2 === 0 ? "f32" : "f64";
      const { scalars, tensors, expected } = interpreted(each, dtype, BLOCKS, true);
      const kernel = backend.kernel({ kind: "rule", rule: each, dtype });
      backend.launch({ kind: "rule", kernel, tensors: tensors.map((list) => list.map(slice)), scalars });
      tensors.forEach((list, t) => {
        list.forEach((array, b) => {
          expect(array, `${each.name}: ${each.buffers[b]} of ${BLOCKS[t]}`).toAgreeWith(expected[t]![b]!, "bits");
        });
      });
    }
  });

  it.each(rules)("of $name have sums of squares in the order of sums", (rule) => {
    const update = UPDATES[2];
    const outcomes = (["way", "end"] as const).map((outcome) => attempt(() => outcomeRule(rule, update, outcome)));
    for (const [k, each] of [movesRule(rule, false), ...outcomes].entries()) {
      if (each === undefined || !backend.sumsRule!(each)) continue;
      const dtype = k % 2 === 0 ? "f32" : "f64";
      const { scalars, tensors, expected } = interpreted(each, dtype, CHUNKS, false);
      const before = tensors.map((list) => list.map((array) => array.slice()));
      const [sums, wanted] = [0, 1].map(() => new (dtype === "f32" ? Float32Array : Float64Array)(CHUNKS.length)) as [
        Float32Array,
        Float32Array,
      ];
      const places = CHUNKS.map((_, t) => ({ ...slice(sums), byteOffset: t * sums.BYTES_PER_ELEMENT, length: 1 }));
      backend.launch({
        kind: "rule",
        kernel: backend.kernel({ kind: "rule", rule: each, dtype, sums: true }),
        tensors: tensors.map((list, t) => [...list.slice(0, -1).map(slice), places[t]!]),
        scalars,
      });
      backend.launch({
        kind: "sumSquares",
        kernel: backend.kernel({ kind: "sumSquares", dtype }),
        inputs: expected.map((list) => slice(list.at(-1)!)),
        output: slice(wanted),
      });
      expect(sums, each.name).toAgreeWith(wanted, "bits");
      tensors.forEach((list, t) => {
        list.forEach((array, b) => {
          expect(array, `${each.name} changes nothing`).toAgreeWith(before[t]![b]!, "bits");
        });
      });
    }
  });

  it.each(rules)("of $name, rewritten too, take the scalars of each run of a list", (rule) => {
    const modified = attempt(() => modifiedRule(rule, UPDATES[2]));
    if (modified === undefined) return;
    const each = rewritten(modified, ["scale", "clamp"]);
    const kernel = backend.kernel({ kind: "rule", rule: each, dtype: "f32" });
    const { tensors } = interpreted(each, "f32", BLOCKS, false);
    const expected = tensors.map((buffers) => buffers.map((array) => array.slice()));
    const launchOf = (seed: number) =>
      ({
        ...{ kind: "rule" as const, kernel, tensors: tensors.map((list) => list.map(slice)) },
        scalars: seededScalars(each, seed),
      }) as const;
    const list = backend.prepare!([launchOf(1)], []);
    for (const seed of [2, 3]) {
      const { scalars } = launchOf(seed);
      list.run(new Map([[0, scalars]]), []);
      for (const buffers of expected) interpretRule(each.program, "f32", buffers, scalars);
    }
    for (const [t, buffers] of tensors.entries()) expect(buffers, each.name).toEqual(expected[t]);
    list.dispose();
  });

  it("take a kernel each where the parameter is added to alone", () => {
    const names = rules
      .filter((rule) => attempt(() => modifiedRule(rule, UPDATES[0]))?.modified)
      .map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["adam", "lion", "nadam", "radam", "sgdMomentum", "yogi", "adopt"]));
    expect(names).not.toContain("adamL2"); // its gradient has the parameter in it
  });
});
