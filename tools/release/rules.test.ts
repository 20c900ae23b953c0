import { expect, it } from "vitest";
import { pendingChangesets } from "./changesets.mjs";
import {
  type Algorithm,
  KERNELS,
  parsed,
  presentRules,
  type ReleasedRule,
  recorded,
  releasedRules,
  unannounced,
  written,
} from "./rules";

const rule = (hash: string) => ({ name: "nadam", hash }) as ReleasedRule;
const nadam = (version: string, ...hashes: string[]): Algorithm[] => [
  { name: "@opt/nadam", version, rules: hashes.map(rule) },
];
const changesetFor = (...names: string[]) => `---\n${names.map((name) => `"${name}": patch`).join("\n")}\n---\n`;

it("rules that changed since the last release come with a changeset for every package of kernels built ahead", async () => {
  expect(unannounced(releasedRules(), await presentRules(), pendingChangesets())).toEqual([]);
});

it.each([
  ["nothing changed", ["a", "b"], [], 0],
  ["a changed rule without a changeset", ["a", "c"], [], 1],
  ["with a changeset for one of the kernels", ["a", "c"], [changesetFor("@opt/nadam", KERNELS[0]!)], 1],
  ["with changesets for all kernels", ["a", "c"], [changesetFor(KERNELS[0]!), changesetFor(KERNELS[1]!)], 0],
])("%s", (_name, hashes, changesets, problems) => {
  const released = recorded({}, nadam("0.1.0", "a", "b"));
  expect(unannounced(released, nadam("0.1.0", ...hashes), changesets)).toHaveLength(problems);
});

it("keeps what the two newest series have had", () => {
  const hashes = (released: ReturnType<typeof recorded>) =>
    Object.entries(released["@opt/nadam"]!).map(([series, rules]) => [series, rules.map(({ hash }) => hash).join("")]);
  const first = recorded({}, nadam("0.9.0", "a"));
  const patched = recorded(first, nadam("0.9.1", "b"));
  expect(hashes(patched)).toEqual([["0.9", "ab"]]);
  const next = recorded(patched, nadam("0.10.0", "b", "c"));
  expect(hashes(next).sort()).toEqual(
    [
      ["0.10", "bc"],
      ["0.9", "ab"],
    ].sort(),
  );
  expect(hashes(recorded(next, nadam("1.0.0", "d"))).sort()).toEqual(
    [
      ["0.10", "bc"],
      ["1", "d"],
    ].sort(),
  );
});

it("finds the rules of the algorithm packages", async () => {
  const present = await presentRules();
  expect(present.map(({ name }) => name)).toEqual(expect.arrayContaining(["@opt/adam-amsgrad", "@opt/nadam"]));
  for (const { name, rules } of present) expect(rules.length, name).toBeGreaterThan(0); // Rprop has one
});

it("the record brings back every rule as it was, infinite constants too", async () => {
  const record = recorded({}, await presentRules());
  expect(JSON.stringify(record)).toContain("null");
  expect(parsed(written(record))).toEqual(record);
});
