/** The runs: one whose weights the worker has, and the curves of those before it. */
import { type StartedRun, start } from "@opt/train/worker";
import type { Answers, Begun, Request } from "./requests";
import { MOST_RUNS, type Run, type Settings } from "./run";

/** Milliseconds between two looks at a training. */
const LOOK_EVERY = 80;

export interface Watcher {
  /** Everything that is shown may have changed. */
  looked(): Promise<void>;
  /** Training has stopped by itself. */
  failed(error: unknown): void;
}

export class Training {
  readonly runs: Run[] = [];
  run!: Run;
  /** Steps a second, of the last look. */
  speed = 0;
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  #active: StartedRun<Answers["train"]> | undefined;
  #round: Promise<void> = Promise.resolve();

  constructor(private readonly watcher: Watcher) {}

  get running(): boolean {
    return this.#active !== undefined;
  }

  /** The worker answers also while it trains. */
  ask<Ask extends keyof Answers>(request: Request & { ask: Ask }): Promise<Answers[Ask]> {
    return start<Answers[Ask]>(this.#worker, request).result;
  }

  /** Begins a run; the one before it keeps its curve. */
  begin(settings: Settings): Promise<void> {
    return this.#replace({ ask: "begin", settings });
  }

  /** Goes on with a run that was saved. */
  load(from: Blob | "kept", device: string): Promise<void> {
    return this.#replace({ ask: "begin", from, device });
  }

  async #replace(request: Request & { ask: "begin" }): Promise<void> {
    await this.pause();
    const { settings, losses, measured }: Begun = await this.ask(request);
    if (this.run?.losses.length === 0) this.remove(this.run);
    if (this.runs.length === MOST_RUNS) this.runs.shift();
    const used = new Set(this.runs.map(({ number }) => number));
    const number = Array.from({ length: MOST_RUNS }, (_, i) => i).find((free) => !used.has(free))!;
    this.run = { ...settings, number, losses: [...losses], measured: [...measured] };
    this.runs.push(this.run);
    this.speed = 0;
  }

  remove(run: Run): void {
    this.runs.splice(this.runs.indexOf(run), 1);
  }

  start(): void {
    this.#active = start(this.#worker, { ask: "train" } satisfies Request);
    this.#round = this.#follow(this.#active).catch((error: unknown) => {
      this.#active = undefined;
      this.watcher.failed(error);
    });
  }

  /** Resolves when nothing is under way any more. */
  async pause(): Promise<void> {
    this.#active?.stop();
    await this.#round;
  }

  async #follow(active: StartedRun<Answers["train"]>): Promise<void> {
    const { run } = this;
    let [shown, since] = [run.losses.length, performance.now()];
    for await (const { type, step, losses, logs } of active) {
      if (type === "trainBegin") run.losses.length = shown = step; // after a failure it goes on from the last pause
      run.losses.push(...losses);
      if (type === "evaluate") run.measured.push({ step, accuracy: logs.val_accuracy! });
      if (type !== "stepEnd") continue; // the next step shows it
      const begin = performance.now();
      this.speed = ((run.losses.length - shown) * 1000) / (begin - since);
      [shown, since] = [run.losses.length, begin];
      await this.watcher.looked();
      // While this event is held, the worker tells of no step.
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY - (performance.now() - begin)));
    }
    run.measured.splice(0, run.measured.length, ...(await active.result));
    this.#active = undefined;
    await this.watcher.looked();
  }
}
