/** The pages of the site are what the command writes from the stored rows. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { measuredCells } from "./cells";
import { GUIDE_FILE, guideOf } from "./guide";
import { PAGE_FILE, pageOf, REPEATABLE_FILE, repeatableOf } from "./page";
import { readRows } from "./rows";

const cells = measuredCells(readRows().values());

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

it("leaves out what was not searched to the end", () => {
  const rows = [...readRows().values()].filter(({ optimizer, seed }) => optimizer !== "Adam" || seed < 2);
  const names = new Set(measuredCells(rows).map(({ of }) => of.optimizer));
  expect(names.has("Adam")).toBe(false);
  expect(names.has("AdamW")).toBe(true);
});
