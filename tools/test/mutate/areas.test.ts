import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { areaOf, areas, patternOf } from "./areas.mjs";

const names = Object.keys(areas);
const tests = ["packages", "e2e"]
  .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => `${folder}/${path}`))
  .filter((path) => path.endsWith(".test.ts"));

it.each(names)("%s names tests that exist", (name) => {
  const missing = areaOf(name).tests.filter((test) => !tests.some((path) => patternOf(test).test(path)));
  expect(missing).toEqual([]);
});

it("records scores of areas that exist, with a reason for each equivalent mutant", () => {
  const files = new Set(names.map((name) => areaOf(name).scores));
  for (const file of [...files].filter(existsSync)) {
    const recorded: Record<string, { equivalents?: { file: string; reason: string }[] }> = JSON.parse(
      readFileSync(file, "utf8"),
    );
    expect(Object.keys(recorded).filter((name) => !(name in areas) || areaOf(name).scores !== file)).toEqual([]);
    for (const { file, reason } of Object.values(recorded).flatMap(({ equivalents = [] }) => equivalents)) {
      expect(existsSync(file), file).toBe(true);
      expect(reason.split(" ").length, file).toBeGreaterThan(2);
    }
  }
});

it("has each area in the nightly workflow", () => {
  const nightly = readFileSync(".github/workflows/nightly.yml", "utf8");
  const listed = /area:\n((?: +- [\w-]+\n)+)/.exec(nightly)?.[1]?.match(/[\w-]*\w/g);
  expect(listed).toEqual(names);
});
