/** Writes the kernels of rules: `tsx main.ts <folder>`. A file that would not change is left alone, so that nothing is built twice. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtRules } from "./rules";
import { writeRules } from "./write-kernels";

const folder = process.argv[2];
if (folder === undefined) throw new Error("Say where to write: tsx main.ts <folder>.");
mkdirSync(folder, { recursive: true });
const path = join(folder, "rules.cu");
const text = writeRules(builtRules);
if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
