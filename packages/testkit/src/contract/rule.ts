/** Rules: the bits of the interpreter, over lists of tensors of different sizes. */
import { interpretRule, type Rule, type TypedArray } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { Random } from "../numbers/random";
import { seededBuffers, seededScalars } from "../numbers/seeded";
import { SPECIALS } from "../numbers/specials";
import { type ContractContext, LARGE, SIZES } from "./context";
import type { Regions } from "./guarded-launch";
import { BUILTIN_RULES } from "./rules";
import "../numbers/matcher";

export function ruleContract(context: ContractContext): void {
  const { dtype, specials, rules, tolerances } = context;

  /** One launch over tensors of the given sizes. */
  async function checkRule(rule: Rule, sizes: readonly number[], scalars: readonly number[], seed: number) {
    const tensors = sizes.map((size, t) => seededBuffers(rule, { size, seed: seed + t, dtype, specials }));
    const input: Record<string, TypedArray> = {};
    const update: Record<string, TypedArray> = {};
    const regions: Regions = { input, update };
    const key = (t: number, slot: number) => `${rule.buffers[slot]} of tensor ${t}`;
    tensors.forEach((buffers, t) => {
      buffers.forEach((array, slot) => {
        (rule.writes.includes(rule.buffers[slot]!) ? update : input)[key(t, slot)] = array;
      });
    });
    await context.check(
      { kind: "rule", rule, dtype },
      regions,
      (slices) => ({ tensors: tensors.map((buffers, t) => buffers.map((_, slot) => slices[key(t, slot)]!)), scalars }),
      (results, label) => {
        tensors.forEach((buffers, t) => {
          const expected = buffers.map((array) => array.slice());
          interpretRule(rule.program, dtype, expected, scalars);
          expected.forEach((array, slot) => {
            const result = results[key(t, slot)];
            if (result === undefined) return;
            expect(result, `${key(t, slot)} (${array.length}), ${label}`).toAgreeWith(array, tolerances.rule);
          });
        });
      },
    );
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

  describe.each(BUILTIN_RULES)("rule $name", (rule) => {
    it.each(SIZES)("of one tensor of %d", (size) => checkRule(rule, [size], seededScalars(rule, 1), 10));
    it("of many tensors of different sizes in one launch", async () => {
      await checkRule(rule, [...SIZES, 1, 64, 0, 256], seededScalars(rule, 2), 20);
    });
    it("of more than 65,535 elements", () => checkRule(rule, [3, LARGE, 1], seededScalars(rule, 3), 40));
    it("of no tensors", () => checkRule(rule, [], seededScalars(rule, 4), 50));
    checkScalarsOfAllKinds(rule);
  });

  describe.each(rules)("rule $name", (rule) => {
    it("of tensors of all sizes in one launch", async () => {
      await checkRule(rule, [...SIZES, 1, 64, 0, 256], seededScalars(rule, 70), 80);
    });
    checkScalarsOfAllKinds(rule);
  });
}
