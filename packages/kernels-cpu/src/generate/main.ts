/** Writes the rule kernels: `tsx main.ts <folder>`. Files that would not change are left alone, so that nothing is built twice. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtRules } from "./rules";
import { writeRules } from "./write-rules";

const folder = process.argv[2];
if (folder === undefined) throw new Error("Say where to write: tsx main.ts <folder>.");
mkdirSync(folder, { recursive: true });
const { functions, hashes } = writeRules(builtRules);
for (const [name, text] of [
  ["rules.inc", functions],
  ["rule-hashes.inc", hashes],
] as const) {
  const path = join(folder, name);
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
}
