/** A hash of the code that a task's runs depend on. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";
import type { TaskName } from "./tasks";

/** Without comments, spaces, and what only readers of the page see. */
const codeOf = (file: string) =>
  transformSync(readFileSync(new URL(file, import.meta.url), "utf8"), {
    loader: "ts",
    minifyWhitespace: true,
  }).code.replace(/(title|about):(["`]).*?\2,/g, "");

export function versionOf(task: TaskName): string {
  const hash = createHash("sha256");
  for (const file of [`tasks/${task}.ts`, "tasks/batches.ts"]) hash.update(codeOf(file));
  return hash.digest("hex").slice(0, 8);
}
