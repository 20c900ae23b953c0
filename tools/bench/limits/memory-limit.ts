/**
 * The memory limit of this machine, measured in the same run by a compiled loop over all cores: it reads parameters, gradients and state,
 * writes all but the gradients, and does next to nothing with them. State is two arrays, with AMSGrad three.
 */
import { availableParallelism } from "node:os";
import type { Contender } from "../contender";
import type { OptimizerWork } from "../optimizer-work";
import { openProcess } from "../process-session";
import { compileLoop } from "./program";

const headerOf = (buffers: number) => `
static void touch(float* const* arrays, const float*, long long begin, long long end) {
  const float* gradients = arrays[1];
#pragma GCC ivdep
  for (long long i = begin; i < end; i++) {
    ${[0, 2, 3, 4]
      .slice(0, buffers - 1)
      .map((buffer) => `arrays[${buffer}][i] += gradients[i];`)
      .join(" ")}
  }
}
#define RULE touch
constexpr int BUFFERS = ${buffers};
constexpr float SCALARS[] = {0};
`;

export const memoryLimit: Contender<OptimizerWork> = {
  name: "memory limit",
  tolerance: null,
  async open(work) {
    const program = compileLoop(headerOf(work.optimizer === "AMSGrad" ? 5 : 4));
    return program === "" ? "g++ is missing" : openProcess(program, [String(availableParallelism())], work);
  },
};
