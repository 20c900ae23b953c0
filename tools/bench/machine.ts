/** What the numbers were measured on: a figure without its processor and caches says little. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";

const CACHES = "/sys/devices/system/cpu/cpu0/cache";

/** One line: processor, cores, caches, memory, load. */
export function machine(): string {
  const name = cpus()[0]?.model.trim() ?? "unknown processor";
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const load = loadavg()[0]!.toFixed(1);
  return [`${name}, ${availableParallelism()} processors`, ...caches(), memory, `load ${load} at the start`].join(", ");
}

/** Those of the first processor, where Linux tells: L1 data 48K, ... */
function caches(): string[] {
  if (!existsSync(CACHES)) return [];
  const entries = readdirSync(CACHES).filter((entry) => entry.startsWith("index"));
  return entries.sort().flatMap((entry) => {
    const [level, type, size] = ["level", "type", "size"].map((file) =>
      readFileSync(join(CACHES, entry, file), "utf8").trim(),
    );
    return type === "Instruction" ? [] : [`L${level}${type === "Data" ? " data" : ""} ${size}iB`];
  });
}
