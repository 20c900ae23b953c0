import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { brokenRules } from "./rooms";

/** A folder of files, each importing others by these paths. */
function sources(files: Record<string, string[]>): URL {
  const folder = mkdtempSync(join(tmpdir(), "rooms-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [file, paths] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), paths.map((path) => `import type { A } from "${path}";\n`).join(""));
  }
  return pathToFileURL(`${folder}/`);
}

it("a room imports from rooms before it", () => {
  const folder = sources({ "low/a.ts": [], "high/a.ts": ["../low/a"], "index.ts": ["./high/a"] });
  expect(brokenRules(folder, ["low", "high"])).toEqual([]);
  expect(brokenRules(folder, ["high", "low"])).toEqual(["high/a.ts imports low/a.ts"]);
});

it("a file named alone is a room", () => {
  const folder = sources({ "low/a.ts": ["../engine"], "engine.ts": [] });
  expect(brokenRules(folder, ["engine.ts", "low"])).toEqual([]);
  expect(brokenRules(folder, ["low", "engine.ts"])).toEqual(["low/a.ts imports engine.ts"]);
});

it("a folder within a room can be a room", () => {
  const folder = sources({ "save/step/a.ts": [], "plan/a.ts": ["../save/step/a"], "save/b.ts": ["../plan/a"] });
  expect(brokenRules(folder, ["save/step", "plan", "save"])).toEqual([]);
});

it("rooms of a layer have no circle", () => {
  const oneWay = sources({ "a/a.ts": ["../b/b"], "b/b.ts": ["../c/c"], "c/c.ts": [] });
  expect(brokenRules(oneWay, [["a", "b", "c"]])).toEqual([]);
  const around = sources({ "a/a.ts": ["../b/b"], "b/b.ts": ["../c/c"], "c/c.ts": ["../a/d"], "a/d.ts": [] });
  expect(brokenRules(around, [["a", "b", "c"]])).toEqual(["circle of rooms: a -> b -> c -> a"]);
});

it("a folder in no room, a room without files and an import of an entry are reported", () => {
  const folder = sources({
    "new/a.ts": [],
    "low/a.ts": ["../index", "../other"],
    "index.ts": [],
    "other/index.ts": [],
  });
  expect(brokenRules(folder, ["low", "gone"])).toEqual([
    "new/a.ts is in no room",
    "other/index.ts is in no room",
    "room gone has no file",
    "low/a.ts imports the entry index.ts",
  ]);
});

it("side effects, exports and types in place are imports", () => {
  const folder = sources({ "low/a.ts": [], "high/a.ts": [], "high/b.ts": [], "high/c.ts": [] });
  const text = `import "../high/a";\nexport * from "../high/b";\ntype C = import("../high/c").C;\n`;
  writeFileSync(new URL("low/a.ts", folder), text);
  expect(brokenRules(folder, ["low", "high"])).toEqual(
    ["a", "b", "c"].map((file) => `low/a.ts imports high/${file}.ts`),
  );
});

it("names of the manifest are imports", () => {
  const root = sources({ "src/low/a.ts": ["#platform"], "src/high/node.ts": [] });
  const imports = { "#platform": { "@opt/source": "./src/high/node.ts", default: "./dist/node.js" } };
  writeFileSync(new URL("package.json", root), JSON.stringify({ imports }));
  expect(brokenRules(new URL("src/", root), ["low", "high"])).toEqual(["low/a.ts imports high/node.ts"]);
});
