/** Writes the kernels of rules and rows, the functions of float32 and the fields of commands: `tsx main.ts <folder>`. Files that would not change are left alone, so that nothing is built twice. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtMoves, builtRules } from "@opt/testkit/built-rules";
import { workspaceRowPrograms } from "@opt/testkit/row-programs";
import { writeCommands, writeProtocol } from "./write-commands";
import { writeFunctions } from "./write-functions";
import { writeAllRows } from "./write-rows";
import { writeRules } from "./write-rules";

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("Say where to write: tsx main.ts <folder>.");
mkdirSync(folder, { recursive: true });
const { functions, hashes } = writeRules([...builtRules, ...builtMoves]);
const ofRows = writeAllRows(await workspaceRowPrograms());
for (const [name, text] of [
  ["rules.inc", functions],
  ["rule-hashes.inc", hashes],
  ["functions.inc", writeFunctions()],
  ["rows.inc", ofRows.functions],
  ["row-hashes.inc", ofRows.hashes],
  ["protocol.h", writeProtocol()],
  ["commands.h", writeCommands()],
] as const) {
  const path = join(folder, name);
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
}
