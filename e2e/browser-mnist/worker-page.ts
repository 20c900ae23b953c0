/** A page that starts trainings in workers. */
import { init, type Tensor } from "@opt/core";
import { start } from "@opt/train/worker";
import type { Settings } from "./worker-training";

interface Result {
  weights: Record<string, Tensor>;
  losses: number[];
  accuracy: number;
}

/** What a training came to. */
export interface Seen {
  /** All bytes of the weights, as one number. */
  readonly digest: number;
  readonly losses: readonly number[];
  readonly accuracy: number;
  readonly error: string;
}

/** @param killAfter the number of checkpoints after which the page ends the worker */
async function train(settings: Settings, killAfter?: number): Promise<Seen> {
  await init("js");
  const worker = new Worker(new URL("./worker-training.ts", import.meta.url), { type: "module" });
  const run = start<Result>(worker, settings);
  let [saves, error] = [0, ""];
  let result: Result | undefined;
  try {
    for await (const { type } of run) {
      if (type === "save" && ++saves === killAfter) worker.terminate();
    }
    result = await run.result;
  } catch (problem) {
    error = (problem as { code?: string }).code ?? String(problem);
  }
  let digest = 0;
  for (const weights of Object.values(result?.weights ?? {}))
    for (const byte of await weights.bytes()) digest = (Math.imul(digest, 31) + byte) | 0;
  worker.terminate();
  const { losses = [], accuracy = 0 } = result ?? {};
  return { digest, losses, accuracy, error };
}

declare global {
  var trainInWorker: typeof train;
}
globalThis.trainInWorker = train;
