import { expect, it } from "vitest";
import { report } from "./test-report.mjs";

const skipped = (file: string, reason: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ file, reason, name: `test ${index}` }));

it("says what was skipped by reason and file, and what failed last", () => {
  const failures = [{ name: "c.test.ts > adds", problem: "expected 3, got 4\n    at c.ts:1" }];
  const text = report(7, failures, [...skipped("a.test.ts", "no GPU", 5), ...skipped("", "no git", 1)]);
  expect(text.split("\n")).toEqual([
    "Skipped:",
    "  no GPU:",
    "    a.test.ts: test 0; test 1; test 2; and 2 more",
    "  no git:",
    "    test 0",
    "",
    "Failed:",
    "  c.test.ts > adds",
    "    expected 3, got 4",
    "        at c.ts:1",
    "",
    "7 passed, 1 failed, 6 skipped",
  ]);
});

it("cuts what one test says at 30 lines", () => {
  const problem = Array.from({ length: 40 }, (_, line) => `line ${line}`).join("\n");
  expect(
    report(0, [{ name: "a", problem }], [])
      .split("\n")
      .at(-3),
  ).toBe("    (10 more lines)");
});
