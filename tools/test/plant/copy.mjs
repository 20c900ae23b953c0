/** A copy of the sources, in which faults are planted. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root, run } from "../../workspace/run.mjs";

/** Files from the root, as git lists them. @param {string[]} args */
export const listed = (...args) =>
  run("git", ["ls-files", ...args], { quiet: true })
    .stdout.split("\n")
    .filter(Boolean);

/** All sources, beside links to what is installed and built. @param {string} folder */
export function copySources(folder) {
  for (const file of listed("--cached", "--others", "--exclude-standard")) {
    if (existsSync(join(root, file))) cpSync(join(root, file), join(folder, file));
  }
  for (const ignored of listed("--others", "--ignored", "--exclude-standard", "--directory")) {
    const path = ignored.replace(/\/$/, "");
    if (path === "node_modules" || !existsSync(join(folder, dirname(path)))) continue;
    symlinkSync(join(root, path), join(folder, path));
  }
  linkPackages(folder, "node_modules");
}

/** The workspace's own packages are those of the copy. @param {string} folder @param {string} path */
function linkPackages(folder, path) {
  mkdirSync(join(folder, path));
  for (const name of readdirSync(join(root, path))) {
    if (/^@opt(-e2e)?$/.test(name))
      cpSync(join(root, path, name), join(folder, path, name), { recursive: true, verbatimSymlinks: true });
    else if (name !== ".vite" && name !== ".vitest") symlinkSync(join(root, path, name), join(folder, path, name));
  }
}

/** @param {string} folder @param {import("./faults.mjs").Fault} fault @returns {() => void} puts the sources back */
export function plant(folder, { name, edits }) {
  /** @type {Map<string, string>} */
  const before = new Map();
  const restore = () => {
    for (const [file, text] of before) writeFileSync(join(folder, file), text);
  };
  for (const { file, find, by } of edits) {
    const text = readFileSync(join(folder, file), "utf8");
    if (text.split(find).length !== 2) {
      restore();
      throw new Error(`${name}: ${file} must have once: ${find}`);
    }
    if (!before.has(file)) before.set(file, text);
    writeFileSync(
      join(folder, file),
      text.replace(find, () => by),
    );
  }
  return restore;
}
