/** Writes the kernels of rules and maps: `tsx main.ts <folder>`. Files that would not change are left alone, so that nothing is built twice. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtMaps, writeMaps } from "./maps";
import { builtRules } from "./rules";
import { writeRules } from "./write-kernels";

const folder = process.argv[2];
if (folder === undefined) throw new Error("Say where to write: tsx main.ts <folder>.");
mkdirSync(folder, { recursive: true });
for (const [name, text] of [
  ["rules.cu", writeRules(builtRules)],
  ["maps.cu", writeMaps(builtMaps)],
] as const) {
  const path = join(folder, name);
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
}
