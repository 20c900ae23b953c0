/** The changesets that wait for the next release. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../run.mjs";

const folder = join(root, ".changeset");

/** The texts of all. */
export function pendingChangesets() {
  const names = readdirSync(folder).filter((name) => name.endsWith(".md"));
  return names.map((name) => readFileSync(join(folder, name), "utf8"));
}

/** The packages that one of them releases. */
export function announcedPackages() {
  const heads = pendingChangesets().map((text) => text.split("---")[1] ?? "");
  return new Set(
    heads.flatMap((head) => [...head.matchAll(/"(.+)": *(?:patch|minor|major)/g)].map(([, name = ""]) => name)),
  );
}

/** @param {string} name @param {readonly string[]} packages @param {string} text */
export function writeChangeset(name, packages, text) {
  const head = packages.map((each) => `"${each}": patch`).join("\n");
  writeFileSync(join(folder, `${name}.md`), `---\n${head}\n---\n\n${text}\n`);
}
