/** The memory limit of this machine, measured in the same run by a compiled loop over all cores. */
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Contender } from "../contender";
import type { OptimizerWork } from "../optimizer-work";
import { openProcess } from "../process-session";

let program: string | undefined;

function build(): string {
  if (program !== undefined) return program;
  const target = join(mkdtempSync(join(tmpdir(), "opt-bench-")), "memory-limit");
  const source = fileURLToPath(new URL("./memory_limit.cc", import.meta.url));
  const { status, error } = spawnSync("g++", ["-O3", "-march=native", "-fopenmp", "-o", target, source], {
    stdio: "inherit",
  });
  program = status === 0 && error === undefined ? target : "";
  return program;
}

export const memoryLimit: Contender<OptimizerWork> = {
  name: "memory limit",
  tolerance: null,
  async open(work) {
    const built = build();
    return built === "" ? "g++ with OpenMP is missing" : openProcess(built, [], work);
  },
};
