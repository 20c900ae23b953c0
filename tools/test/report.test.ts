import { expect, it } from "vitest";
import { report } from "./report.mjs";

const lines = (count: number) => Array.from({ length: count }, (_, line) => `line ${line}`).join("\n");

it("says what was skipped by reason and file, and what failed last, of which it cuts long texts", () => {
  const skipped = ["a.test.ts", "a.test.ts", ""].map((file, i) => ({
    file,
    reason: file && "no GPU",
    name: `test ${i}`,
  }));
  const text = report(7, [{ name: "c.test.ts > adds", problem: lines(40) }], skipped).split("\n");
  expect(text.slice(0, 9)).toEqual([
    "Skipped:",
    "  no GPU:",
    "    a.test.ts, 2 tests",
    "  :",
    "    test 2",
    "",
    "Failed:",
    "  c.test.ts > adds",
    "    line 0",
  ]);
  expect(text.slice(-3)).toEqual(["    (10 more lines)", "", "7 passed, 1 failed, 3 skipped"]);
});
