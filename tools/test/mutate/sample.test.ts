import { expect, it } from "vitest";
import { isSampled } from "./sample.mjs";

const mutants = Array.from({ length: 4000 }, (_, i) => ({
  file: `packages/core/src/ops/file-${i % 7}.ts`,
  location: { start: { line: i, column: i % 60 }, end: { line: i, column: (i % 60) + 5 } },
  replacement: i % 2 === 0 ? "true" : "false",
}));

it.each([2, 7, 10, 32])("takes one of %i mutants, of each file", (sample) => {
  const chosen = mutants.filter((mutant) => isSampled(mutant, sample));
  // Within four standard deviations of a fair choice.
  const expected = mutants.length / sample;
  expect(Math.abs(chosen.length - expected)).toBeLessThan(4 * Math.sqrt(expected));
  expect(new Set(chosen.map(({ file }) => file)).size).toBe(7);
});

it("takes the same ones on each machine, and all for 1", () => {
  expect(mutants.filter((mutant) => isSampled(mutant, 1))).toHaveLength(mutants.length);
  const places = mutants.flatMap((mutant, i) => (isSampled(mutant, 10) ? [i] : []));
  expect(places.slice(0, 5)).toEqual([14, 18, 22, 26, 31]);
});

it("chooses between mutants of one place by what they put there", () => {
  const at = { file: "a.ts", location: { start: { line: 3, column: 4 }, end: { line: 3, column: 9 } } };
  const taken = ["true", "false", "a < b", "a <= b", "a > b", "a >= b", "a === b", "a !== b"].filter((replacement) =>
    isSampled({ ...at, replacement }, 2),
  );
  expect(taken.length).toBeGreaterThan(0);
  expect(taken.length).toBeLessThan(8);
});
