/** Memory of this process on Linux, in bytes. */
import { readFileSync, writeFileSync } from "node:fs";

function statusOf(key: string): number {
  const found = new RegExp(`^${key}:\\s*(\\d+) kB`, "m").exec(readFileSync("/proc/self/status", "utf8"));
  return 1024 * Number(found?.[1]);
}

export const residentBytes = () => statusOf("VmRSS");
/** The most since `forgetPeak`. */
export const peakBytes = () => statusOf("VmHWM");
export const forgetPeak = () => writeFileSync("/proc/self/clear_refs", "5");
