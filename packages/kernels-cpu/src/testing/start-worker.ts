/** A worker thread that runs a TypeScript file: loaders are not passed on to workers by every Node. */
import { Worker } from "node:worker_threads";

export function startWorker(url: string): Worker {
  const tsx = import.meta.resolve("tsx/esm/api");
  const code = `import("${tsx}").then(({ register }) => (register(), import("${url}")))`;
  return new Worker(code, { eval: true });
}
