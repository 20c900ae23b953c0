/** The table of ops and the page of features are those of the definitions. `OPT_WRITE_DOCS=1` writes them anew. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { torchPython } from "@opt/testkit";
import { expect, it } from "vitest";
import { INSTEAD, NAMED } from "./torch-instead";
import { featuresPage, opTable, oursFor } from "./torch-pages";

const fileOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const [MIGRATION, FEATURES] = [fileOf("../../docs/guides/migration.md"), fileOf("../../docs/guides/features.md")];
const NAMES = fileOf("torch-names.txt");
const COMMAND = "OPT_WRITE_DOCS=1 npm run unit -- e2e/docs/torch-pages";

const asked = () => execFileSync(torchPython!, [fileOf("torch-names.py")], { encoding: "utf8", timeout: 120_000 });

const isWritten = process.env.OPT_WRITE_DOCS !== undefined;
if (isWritten && torchPython !== undefined) writeFileSync(NAMES, asked());
/** A module a line. */
const names = Object.fromEntries(
  readFileSync(NAMES, "utf8")
    .trim()
    .split("\n")
    .map((line) => [line.split(": ")[0]!, line.split(": ")[1]!.split(" ")]),
);
const made = () => featuresPage(names, readFileSync(fileOf("../../docs/guides/coverage.md"), "utf8"));
const MARKED = /(<!-- ops -->\n\n)[\s\S]*?(\n\n<!-- \/ops -->)/;
if (isWritten) {
  writeFileSync(FEATURES, made());
  writeFileSync(
    MIGRATION,
    readFileSync(MIGRATION, "utf8").replace(MARKED, (_, a, b) => `${a}${opTable()}${b}`),
  );
}

it("the migration guide has a row for each op that is defined", () => {
  expect(MARKED.exec(readFileSync(MIGRATION, "utf8"))?.[0], COMMAND).toBe(
    `<!-- ops -->\n\n${opTable()}\n\n<!-- /ops -->`,
  );
});

it("the page of features is that of the exports", () => {
  expect(readFileSync(FEATURES, "utf8"), COMMAND).toBe(made());
});

it("the names are PyTorch's", { timeout: 180_000 }, ({ skip }) => {
  if (torchPython === undefined) return skip("OPT_TORCH_PYTHON is not set");
  expect(readFileSync(NAMES, "utf8"), COMMAND).toBe(asked());
});

it("replaces only what is not here, by what is", () => {
  const all = new Set(Object.values(names).flat());
  expect(Object.keys(INSTEAD).filter((name) => !all.has(name) || oursFor(name) !== undefined)).toEqual([]);
  expect(Object.keys(NAMED).filter((name) => !all.has(name))).toEqual([]);
});
