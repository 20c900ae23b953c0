import { describe, expect, it } from "vitest";
import { measure, noise, problemsOf, textOf } from "./score.mjs";

const source = "const a = 1;\nif (a > 0 &&\n    b) stop();\n";
const at = (line: number, from: number, to: number, end = line) => ({
  start: { line, column: from },
  end: { line: end, column: to },
});
const mutant = (status: string, location = at(2, 5, 10), replacement = "a >= 0") => ({ status, location, replacement });
const report = (...mutants: ReturnType<typeof mutant>[]) => ({ files: { "a.ts": { source, mutants } } });
const score = (found: number, mutants: number, sample = 1) => ({
  score: Math.round((1000 * found) / mutants) / 10,
  sample,
  mutants,
  found,
});

describe("textOf", () => {
  it("says what is replaced by what, on one line", () => {
    expect(textOf(source, mutant("Survived"))).toBe("a > 0 → a >= 0");
    expect(textOf(source, mutant("Survived", at(2, 5, 6, 3), "true"))).toBe("a > 0 && b → true");
  });

  it("cuts long texts", () => {
    const long = `${"x".repeat(300)}`;
    expect(textOf(long, mutant("Survived", at(1, 1, 301), "{}"))).toBe(`${"x".repeat(97)}... → {}`);
  });
});

describe("measure", () => {
  it("counts what tests find, or what never ends, of what was tried", () => {
    const statuses = ["Killed", "Timeout", "Survived", "NoCoverage", "Ignored", "CompileError"];
    const { survivors, ...measured } = measure(report(...statuses.map((status) => mutant(status))), 5, []);
    expect(measured).toEqual({ score: 50, sample: 5, mutants: 4, found: 2, stale: [] });
    const survivor = { file: "a.ts", line: 2, mutant: "a > 0 → a >= 0" };
    expect(survivors).toEqual([
      { ...survivor, isRun: true },
      { ...survivor, isRun: false },
    ]);
  });

  it("leaves out equivalent mutants, by file and text, wherever they are", () => {
    const named = { file: "a.ts", mutant: "a > 0 → a >= 0", reason: "a is never 0" };
    const moved = {
      "a.ts": { source: `\n\n${source}`, mutants: [mutant("Survived", at(4, 5, 10)), mutant("Killed")] },
    };
    expect(measure({ files: moved }, 1, [named])).toMatchObject({ score: 100, mutants: 1, survivors: [], stale: [] });
    const other = { ...named, file: "b.ts" };
    expect(measure(report(mutant("Survived")), 1, [other])).toMatchObject({ mutants: 1, stale: [other] });
  });

  it("knows an equivalent mutant of today's code although this sample leaves it out", () => {
    const named = { file: "a.ts", mutant: "a > 0 → a >= 0", reason: "a is never 0" };
    expect(measure(report(mutant("CompileError")), 9, [named]).stale).toEqual([]);
    expect(measure(report(mutant("CompileError")), 9, [{ ...named, mutant: "a → b" }]).stale).toHaveLength(1);
  });
});

describe("problemsOf", () => {
  it("lets all mutants find half a point less, and no more", () => {
    expect(noise(score(900, 1000), score(905, 1000))).toBe(0.5);
    expect(problemsOf(score(900, 1000), score(905, 1000))).toEqual([]);
    expect(problemsOf(score(900, 1000), score(906, 1000))).toHaveLength(1);
  });

  it("lets a sample find two standard errors less", () => {
    // Of 10 % and 100 mutants: sqrt(0.9 * 0.1 * 0.9 / 100), 2.8 points, beside a score of all.
    expect(noise(score(90, 100, 10), score(900, 1000))).toBeCloseTo(5.69, 2);
    expect(problemsOf(score(90, 100, 10), score(955, 1000))).toEqual([]);
    expect(problemsOf(score(90, 100, 10), score(960, 1000))).toHaveLength(1);
  });

  it("takes a sample in which all was found as one that might have missed something", () => {
    expect(noise(score(50, 50, 10), score(50, 50, 10))).toBeGreaterThan(2);
  });

  it("fails below 80 %, without mutants, and without a recorded score", () => {
    expect(problemsOf(score(79, 100, 10), score(79, 100, 10))).toHaveLength(1);
    expect(problemsOf(score(80, 100, 10), score(80, 100, 10))).toEqual([]);
    expect(problemsOf({ score: 100, sample: 9, mutants: 0, found: 0 }, score(90, 100))).toEqual([
      "no mutant was tried",
    ]);
    expect(problemsOf(score(90, 100), undefined)).toHaveLength(1);
  });
});
