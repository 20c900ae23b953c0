/** Writes the kernels of rules, maps and rows, the functions of float32, and the fields of launches: `tsx main.ts <folder>`. Files that would not change are left alone, so that nothing is built twice. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtRules } from "@opt/testkit/built-rules";
import { workspaceRowPrograms } from "@opt/testkit/row-programs";
import { builtMaps, writeMaps } from "./maps";
import { writeFields } from "./write-fields";
import { writeFunctions } from "./write-functions";
import { writeRules } from "./write-kernels";
import { writeAllRows } from "./write-rows";

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("Say where to write: tsx main.ts <folder>.");
mkdirSync(folder, { recursive: true });
for (const [name, text] of [
  ["rules.cu", writeRules(builtRules)],
  ["maps.cu", writeMaps(builtMaps)],
  ["rows.cu", writeAllRows(await workspaceRowPrograms())],
  ["functions.cuh", writeFunctions()],
  ["fields.cuh", writeFields()],
] as const) {
  const path = join(folder, name);
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
}
