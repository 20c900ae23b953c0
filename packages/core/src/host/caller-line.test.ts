import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { compile, tensor } from "../index";

it("is of the user's own packages, too", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-"));
  try {
    const source = join(folder, "packages", "core", "src");
    mkdirSync(source, { recursive: true });
    writeFileSync(join(source, "mine.mjs"), "export const body = (tensor) => () => {\n  tensor([1]).dataSync();\n};\n");
    const { body } = await import(/* @vite-ignore */ pathToFileURL(join(source, "mine.mjs")).href);
    expect(compile(body(tensor))).toThrow("mine.mjs:2");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("is no line of ours", () => {
  expect(compile(() => tensor([1]).dataSync())).toThrow("caller-line.test.ts");
});
