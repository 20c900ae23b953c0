/** A rank's own cores. Linux likes to run processes that wake each other on one core, where they wait for each other. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { partsOf } from "../communicator/parts";

/** What runs a command on the cores of each rank; undefined where there are more ranks than cores, or no `taskset` of Linux. */
export function coreBinders(size: number): string[][] | undefined {
  const cores = ownCores();
  const isAble = size > 1 && cores.length >= size && spawnSync("taskset", ["-p", String(process.pid)]).status === 0;
  if (!isAble) return undefined;
  return partsOf(cores.length, size).map(({ begin, end }) => ["taskset", "-c", cores.slice(begin, end).join()]);
}

/** The numbers of the cores that this process may run on. */
function ownCores(): number[] {
  if (process.platform !== "linux") return [];
  const list = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
  return list.split(",").flatMap((range) => {
    const [first, last = first] = range.split("-").map(Number) as [number, number?];
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}
