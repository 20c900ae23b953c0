/** Launches while the process's processors are set from outside, one at a time; prints after each which its threads may use, and which were set. */
import { execFileSync } from "node:child_process";
import { openCpuBackend } from "../src/backend";
import { launchRule } from "./launch-rule";
import { allowedProcessors } from "./processors";

/** "0-2,5" as numbers. */
const processors = allowedProcessors()
  .split(",")
  .flatMap((range) => {
    const [first, last = first] = range.split("-").map(Number) as [number, number?];
    return Array.from({ length: last! - first + 1 }, (_, i) => first + i);
  });
const backend = openCpuBackend({ threads: 2 });
launchRule(backend, 200_000, 10);
for (const processor of processors.slice(0, 2)) {
  execFileSync("taskset", ["-apc", String(processor), String(process.pid)], { stdio: "ignore" });
  launchRule(backend, 200_000, 10);
  console.log(allowedProcessors() === String(processor));
}
