import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const SRC = new URL("..", import.meta.url);

it("only what runs on Node alone imports from it", () => {
  const onNode = /^(platform\/node[\w-]*|command\/.*)\.ts$/;
  const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => name.endsWith(".ts") && !/\.(test|soak)\.ts$/.test(name));
  const imports = files.filter((file) => /(from|import\() ?"node:/.test(readFileSync(new URL(file, SRC), "utf8")));
  expect(imports.filter((file) => !onNode.test(file))).toEqual([]);
});
