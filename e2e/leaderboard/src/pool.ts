/** Processes that train runs side by side. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Row, RunKey } from "./rows";
import type { Order } from "./worker";

const WORKER = fileURLToPath(new URL("worker.ts", import.meta.url));

/** Trains what `next` gives until it gives nothing, and calls `done` with each row. */
export async function trainAll(
  jobs: number,
  device: string,
  next: () => RunKey | undefined,
  done: (row: Row) => void,
): Promise<void> {
  const workers = Array.from({ length: jobs }, () => fork(WORKER, { env: { ...process.env, OPT_NUM_THREADS: "1" } }));
  try {
    await Promise.all(workers.map((worker) => work(worker, device, next, done)));
  } finally {
    for (const worker of workers) worker.kill();
  }
}

async function work(worker: ChildProcess, device: string, next: () => RunKey | undefined, done: (row: Row) => void) {
  for (let key = next(); key !== undefined; key = next()) {
    const row = await new Promise<Row>((resolve, reject) => {
      worker.once("message", resolve as (row: unknown) => void);
      worker.once("exit", (code) => reject(new Error(`[leaderboard] A worker ended with ${code}.`)));
      worker.send({ key, device } satisfies Order);
    });
    worker.removeAllListeners("exit");
    done(row);
  }
}
