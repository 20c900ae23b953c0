/** The addon is loaded by workers alone, which end before the process does: twice, so that the second finds the first one's pool. */
import { isMainThread } from "node:worker_threads";
import { openCpuBackend } from "../src/backend";
import { launchRule } from "./launch-rule";
import { startWorker } from "./start-worker";

if (isMainThread) {
  for (let round = 0; round < 2; round++) {
    const worker = startWorker();
    const code = await new Promise((resolve) => worker.once("exit", resolve));
    console.log(`worker ${code} ended`);
  }
  console.log("main done");
} else {
  launchRule(openCpuBackend({ threads: 3 }), 100_000, 3);
}
