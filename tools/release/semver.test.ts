import { expect, it } from "vitest";
import { admits, lowest, series, widened } from "./semver.mjs";

it.each([
  ["^0.1.0", "0.1.9", true],
  ["^0.1.2", "0.1.1", false],
  ["^0.1.0", "0.2.0", false],
  ["^0.1.0 || ^0.2.0", "0.2.3", true],
  ["^1.2.0", "1.9.0", true],
  ["^1.2.0", "2.0.0", false],
  ["^0.0.0", "0.0.0", true],
  ["^0.0.0", "0.0.1", false],
])("%s allows %s: %s", (range, version, allowed) => expect(admits(range, version)).toBe(allowed));

it.each([
  ["^0.0.0", "0.1.0", "^0.1.0"],
  ["^0.1.0", "0.1.5", "^0.1.0"],
  ["^0.1.0", "0.2.0", "^0.1.0 || ^0.2.0"],
  ["^0.9.0 || ^1.0.0", "2.0.0", "^0.9.0 || ^1.0.0 || ^2.0.0"],
])("%s for %s becomes %s", (range, version, wide) => expect(widened(range, version)).toBe(wide));

it("knows the lowest version of a range, and the series of a version", () => {
  expect(lowest("^0.2.1 || ^0.10.0 || ^0.1.3")).toBe("0.1.3");
  expect(["0.2.3", "1.4.0"].map(series)).toEqual(["0.2", "1"]);
});

it("refuses ranges of another form", () => expect(() => admits(">=0.1.0 <1.0.0", "0.1.0")).toThrow(/peer range is/));
