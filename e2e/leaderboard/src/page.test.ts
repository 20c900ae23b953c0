/** The pages of the site are what the command writes from the stored rows. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { cellsOf } from "./cells";
import { GUIDE_FILE, guideOf } from "./guide";
import { PAGE_FILE, pageOf, REPEATABLE_FILE, repeatableOf } from "./page";
import { readRows } from "./rows";

const cells = cellsOf(readRows().values());

it("have all stored rows (npm run leaderboard -- --write writes them)", () => {
  expect(readFileSync(PAGE_FILE, "utf8")).toBe(pageOf(cells));
  expect(readFileSync(GUIDE_FILE, "utf8")).toBe(guideOf(cells));
  expect(readFileSync(REPEATABLE_FILE, "utf8")).toBe(repeatableOf(cells));
});

it("has at least 24 optimizers on each task", () => {
  const lines = pageOf(cells)
    .split("\n## ")
    .map((section) => section.split("\n").filter((line) => /\| `[0-9a-f]{8}` \|$/.test(line)).length);
  expect(lines.filter((count) => count >= 24)).toHaveLength(4);
});

it("does not change with an optimizer that has no rows yet", () => {
  const [first] = cells;
  const added = { of: { ...first!.of, optimizer: "Tomorrow" }, rows: [] };
  expect(pageOf([...cells, added])).toBe(pageOf(cells));
});
