/** Prints the share of a core that the process uses while nothing is launched. */
import { openCpuBackend } from "../backend";
import { launchRule } from "./launch-rule";

launchRule(openCpuBackend(), 200_000, 10);
await new Promise((resolve) => setTimeout(resolve, 50));
const before = process.cpuUsage();
await new Promise((resolve) => setTimeout(resolve, 500));
const { user, system } = process.cpuUsage(before);
console.log((user + system) / 500_000);
