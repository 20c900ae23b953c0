/** A page that starts trainings in workers, and watches how smoothly it runs meanwhile. */
import { init, type Tensor } from "@opt/core";
import { start } from "@opt/train/worker";
import type { Settings } from "./worker-training";

interface Result {
  weights: Record<string, Tensor>;
  losses: number[];
  accuracy: number;
}

/** What a training came to, and what the page felt of it. */
export interface Seen {
  /** All bytes of the weights, as one number. */
  readonly digest: number;
  readonly losses: readonly number[];
  readonly accuracy: number;
  readonly error: string;
  readonly events: number;
  /** Milliseconds: the longest task of the page, and the middle one of the times between its frames. */
  readonly longestTask: number;
  readonly frame: number;
}

/** @param killAfter the number of checkpoints after which the page ends the worker */
async function train(settings: Settings, killAfter?: number): Promise<Seen> {
  await init("js");
  const tasks: number[] = [];
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)));
  observer.observe({ entryTypes: ["longtask"] });
  const frames: number[] = [];
  let isOver = false;
  const tick = (time: number) => {
    frames.push(time);
    if (!isOver) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);

  const worker = new Worker(new URL("./worker-training.ts", import.meta.url), { type: "module" });
  const run = start<Result>(worker, settings);
  let [events, saves, error] = [0, 0, ""];
  let result: Result | undefined;
  try {
    for await (const { type } of run) {
      events++;
      if (type === "save" && ++saves === killAfter) worker.terminate();
    }
    result = await run.result;
  } catch (problem) {
    error = (problem as { code?: string }).code ?? String(problem);
  }
  isOver = true;
  observer.disconnect();
  let digest = 0;
  for (const weights of Object.values(result?.weights ?? {}))
    for (const byte of await weights.bytes()) digest = (Math.imul(digest, 31) + byte) | 0;
  worker.terminate();
  const times = frames.slice(1).map((time, i) => time - frames[i]!);
  const frame = times.sort((a, b) => a - b)[times.length >> 1] ?? 0;
  const { losses = [], accuracy = 0 } = result ?? {};
  return { digest, losses, accuracy, error, events, longestTask: Math.max(0, ...tasks), frame };
}

declare global {
  var trainInWorker: typeof train;
}
globalThis.trainInWorker = train;
