/** Which processors the threads of this process may use, each set once. For Linux. */
import { readdirSync, readFileSync } from "node:fs";

export function allowedProcessors(): string {
  const sets = readdirSync("/proc/self/task").map(
    (thread) => /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync(`/proc/self/task/${thread}/status`, "utf8"))![1]!,
  );
  return [...new Set(sets)].join(" ");
}
