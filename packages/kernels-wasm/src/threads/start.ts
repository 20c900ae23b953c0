/** Starts workers where the platform has them: worker_threads in Node, Workers in a cross-origin isolated page. */
import { nodeModule } from "./platform";
import { WORKER_SOURCE } from "./worker";

export interface WorkerThread {
  terminate(): void;
}

/** How long a thread may take to begin; who takes longer is done without. */
const PATIENCE = 20_000;

interface Start {
  readonly memory: WebAssembly.Memory;
  /** A module to try compiling. */
  readonly probe: Uint8Array;
}

/** A running worker, or undefined where the platform or a content security policy forbids it. `ended`: it is gone, if the platform tells. */
export async function startWorker(start: Start, ended: () => void): Promise<WorkerThread | undefined> {
  const threads = nodeModule<typeof import("node:worker_threads")>("node:worker_threads");
  let timer: unknown;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, PATIENCE);
  });
  const started = threads === undefined ? startInPage(start) : startInNode(threads.Worker, start, ended);
  // Node's permission model throws without --allow-worker.
  const worker = await Promise.race([started.catch(() => undefined), late]);
  clearTimeout(timer as number);
  return worker;
}

function startInNode(
  Worker: typeof import("node:worker_threads").Worker,
  workerData: Start,
  ended: () => void,
): Promise<WorkerThread | undefined> {
  return new Promise((resolve) => {
    const worker = new Worker(WORKER_SOURCE, { eval: true, workerData, execArgv: [] });
    worker.unref(); // keeps no process alive
    worker.once("message", () => resolve({ terminate: () => void worker.terminate() }));
    worker.once("error", () => {});
    worker.once("exit", () => {
      resolve(undefined);
      ended();
    });
  });
}

function startInPage(start: Start): Promise<WorkerThread | undefined> {
  return new Promise((resolve) => {
    const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    const settle = (worker: WorkerThread | undefined) => {
      URL.revokeObjectURL(url);
      resolve(worker);
    };
    try {
      const worker = new Worker(url);
      worker.onmessage = () => settle(worker);
      worker.onerror = () => settle(undefined);
      worker.postMessage(start);
    } catch {
      settle(undefined);
    }
  });
}
