// What a schedule needs, it needs of each group: one that lacks it makes the others no better.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { families, made } from "../../testing/schedules/recipes";

const KINDS = {
  plain: () => ({ lr: 1 }),
  momentum: () => ({ lr: 1, momentum: 0.5 }),
  betas: () => ({ lr: 1, betas: [0.9, 0.999] as const }),
  decay: () => ({ lr: 1, weightDecay: 0.5 }),
};
type Kind = keyof typeof KINDS;

describe.each(families)("%s", (_, runs) => {
  it("rejects groups where it rejects one of them", () => {
    const kinds = fc.array(fc.constantFrom(...(Object.keys(KINDS) as Kind[])), { minLength: 2, maxLength: 3 });
    fc.assert(
      fc.property(runs, kinds, fc.constantFrom(undefined, "weightDecay"), ({ recipes }, chosen, option) => {
        const codeOf = (some: readonly Kind[], recipe: (typeof recipes)[number]) => {
          try {
            made({ groups: some.map((kind) => KINDS[kind]()) }, recipe, option);
            return "";
          } catch (error) {
            return (error as { code: string }).code;
          }
        };
        for (const recipe of recipes) {
          if (Object.values(recipe.options).some(Array.isArray)) continue; // perhaps one for each of some groups
          const alone = chosen.map((kind) => codeOf([kind], recipe)).find((code) => code !== "");
          expect(codeOf(chosen, recipe), chosen.join()).toBe(alone ?? "");
        }
      }),
      { numRuns: 20, seed: 48 },
    );
  });
});
