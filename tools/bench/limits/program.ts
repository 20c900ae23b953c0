/** C++ programs of this folder, compiled for this machine once a run. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const sourceOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const OPTIONS = ["-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"];
const programs = new Map<string, string>();

/** loop.cc around a rule that a header has: the program, or "" where it cannot be built. */
export function compileLoop(header: string, options: readonly string[] = []): string {
  const key = [...options, header].join("\n");
  const known = programs.get(key);
  if (known !== undefined) return known;
  const folder = mkdtempSync(join(tmpdir(), "opt-bench-"));
  const [target, rule] = [join(folder, "loop"), join(folder, "rule.h")];
  writeFileSync(rule, header);
  const places = ["-I", sourceOf("../../../native/cpu/src"), "-include", rule, "-o", target, sourceOf("./loop.cc")];
  const { status, error } = spawnSync("g++", [...OPTIONS, ...options, ...places], { stdio: "inherit" });
  const program = status === 0 && error === undefined ? target : "";
  programs.set(key, program);
  return program;
}
