/** Which processors the threads of this process may use, each set once. For Linux. */
import { readdirSync, readFileSync } from "node:fs";

export function allowedProcessors(): string {
  const sets = readdirSync("/proc/self/task").flatMap((thread) => {
    try {
      return /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync(`/proc/self/task/${thread}/status`, "utf8"))![1]!;
    } catch (error) {
      // A thread that has ended since the folder was read.
      if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code!)) return [];
      throw error;
    }
  });
  return [...new Set(sets)].join(" ");
}
