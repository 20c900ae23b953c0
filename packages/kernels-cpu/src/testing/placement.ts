/** Prints, after launches by as many threads as there are processors, which processors the process's threads may use: each set once. */
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { openCpuBackend } from "../backend";
import { launchRule } from "./launch-rule";

launchRule(openCpuBackend({ threads: availableParallelism() }), 200_000, 10);
const allowed = readdirSync("/proc/self/task").map(
  (thread) => /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync(`/proc/self/task/${thread}/status`, "utf8"))![1]!,
);
console.log([...new Set(allowed)].join(" "));
