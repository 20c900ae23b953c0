/** The layer table of ARCHITECTURE.md ("Core, by layers") is true of the sources beside this test. */
import { readdirSync, readFileSync } from "node:fs";
import { roomsTest } from "@opt/testkit/rooms";
import { expect, it } from "vitest";

const architecture = readFileSync(new URL("../../../ARCHITECTURE.md", import.meta.url), "utf8");
const [, section = ""] = architecture.split("\n## Core, by layers\n");
const [table = ""] = section.split("\n## ");
const rows = table.matchAll(/^\| (\d+) \| ([^|]+) \|/gm);
const layers = [...rows].map(([, , sources = ""]) => [...sources.matchAll(/`([^`]+?)\/?`/g)].map(([, name]) => name!));

roomsTest(new URL(".", import.meta.url), layers);

it("every folder and file of core is in the table, once", () => {
  const sources = readdirSync(new URL(".", import.meta.url)).filter((name) => !name.endsWith(".test.ts"));
  expect(layers.flat().sort()).toEqual(sources.sort());
});
