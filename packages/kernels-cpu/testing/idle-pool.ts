/** Prints the share of a core that the process uses while nothing is launched: the least of several, as Node has work of its own. */
import { openCpuBackend } from "../src/backend";
import { launchRule } from "./launch-rule";

launchRule(openCpuBackend(), 200_000, 10);
const shares: number[] = [];
for (let interval = 0; interval < 6 && !shares.some((share) => share < 0.01); interval++) {
  const before = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, 150));
  const { user, system } = process.cpuUsage(before);
  shares.push((user + system) / 150_000);
}
console.log(String(Math.min(...shares))); // a number itself would be printed in colour where that is forced
