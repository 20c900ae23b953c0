/**
 * The memory limit of this machine, measured in the same run by a compiled loop over all cores: it reads parameters, gradients and state,
 * writes all but the gradients, and does next to nothing with them. State is two arrays, with AMSGrad three.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Contender } from "../contender";
import type { OptimizerWork } from "../optimizer-work";
import { openProcess } from "../process-session";

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

/** Pointers of its own: through `arrays` the loop would be slower where the caches hold all. */
const headerOf = (buffers: number) => {
  const written = [0, 2, 3, 4].slice(0, buffers - 1);
  return `
static void touch(float* const* arrays, const float*, long long begin, long long end) {
  const float* gradients = arrays[1];
  ${written.map((buffer) => `float* b${buffer} = arrays[${buffer}];`).join(" ")}
#pragma GCC ivdep
  for (long long i = begin; i < end; i++) {
    ${written.map((buffer) => `b${buffer}[i] += gradients[i];`).join(" ")}
  }
}
#define RULE touch
constexpr int BUFFERS = ${buffers};
constexpr float SCALARS[] = {0};
`;
};

export const memoryLimit: Contender<OptimizerWork> = {
  name: "memory limit",
  tolerance: null,
  async open(work) {
    const program = compileLoop(headerOf(work.optimizer === "AMSGrad" ? 5 : 4));
    return program === "" ? "g++ is missing" : openProcess(program, [String(availableParallelism())], work);
  },
};
