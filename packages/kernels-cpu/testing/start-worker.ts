import { Worker } from "node:worker_threads";

/** A worker thread that runs the program of this process. */
export const startWorker = (): Worker => new Worker(process.argv[1]!);
