/** Four workers step at the same time; each must get what one thread alone gets. */
import { isMainThread, parentPort } from "node:worker_threads";
import { openCpuBackend } from "../src/backend";
import { launchRule } from "./launch-rule";
import { startWorker } from "./start-worker";

const digest = (buffers: readonly Float32Array[]) =>
  buffers.map((array) => Buffer.from(array.buffer).toString("latin1")).join();

if (isMainThread) {
  const alone = digest(launchRule(openCpuBackend({ threads: 1 }), 50_000, 20));
  const workers = Array.from({ length: 4 }, () => startWorker());
  const results = workers.map((worker) => new Promise((resolve) => worker.once("message", resolve)));
  const agree = (await Promise.all(results)).filter((result) => result === alone).length;
  console.log(`${agree} workers agree`);
} else {
  parentPort!.postMessage(digest(launchRule(openCpuBackend({ threads: 3 }), 50_000, 20)));
}
