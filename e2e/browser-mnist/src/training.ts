/** The runs: one that has its weights and may train, and the curves of those before it. */
import { concat, init, type Tensor, tidy } from "@opt/core";
import type { SavedRun } from "./checkpoint";
import type { Digits } from "./digits";
import { MOST_RUNS, type Run } from "./run";
import { BATCH, Session, type Settings } from "./session";

/** Steps between two measurements on all test digits. */
const MEASURE_EVERY = 200;
/** Between two looks the device runs ahead: for about so many milliseconds. */
const LOOK_EVERY = 80;
const MOST_STEPS = 50;

export interface Watcher {
  /** Everything that is shown may have changed. */
  looked(): Promise<void>;
  measuring(): void;
  /** Training has stopped by itself. */
  failed(error: unknown): void;
}

export class Training {
  readonly runs: Run[] = [];
  /** Images a second, of the last look. */
  speed = 0;
  running = false;
  private round: Promise<void> = Promise.resolve();

  private constructor(
    private readonly training: Digits,
    private readonly test: Digits,
    private readonly watcher: Watcher,
    public session: Session,
    public run: Run,
  ) {
    this.runs.push(run);
  }

  /** `settings.device` is open and the default one. */
  static from(training: Digits, test: Digits, watcher: Watcher, settings: Settings): Training {
    const run: Run = { ...settings, number: 0, losses: [], measured: [] };
    return new Training(training, test, watcher, new Session(training, settings), run);
  }

  /** Begins a run, from first weights or from a file; the one before it keeps its curve. */
  async begin(settings: Settings, saved?: SavedRun): Promise<void> {
    await this.pause();
    await init(settings.device);
    const session = new Session(this.training, settings);
    try {
      saved?.loadInto(session);
    } catch (error) {
      session.dispose();
      throw error;
    }
    this.session.dispose();
    this.session = session;
    if (this.run.losses.length === 0) this.remove(this.run);
    if (this.runs.length === MOST_RUNS) this.runs.shift();
    const used = new Set(this.runs.map(({ number }) => number));
    const number = Array.from({ length: MOST_RUNS }, (_, i) => i).find((free) => !used.has(free))!;
    this.run = { ...settings, number, losses: [], measured: [], ...saved?.curves };
    this.runs.push(this.run);
    this.speed = 0;
  }

  remove(run: Run): void {
    this.runs.splice(this.runs.indexOf(run), 1);
  }

  start(): void {
    this.running = true;
    this.round = this.train().catch((error: unknown) => {
      this.running = false;
      this.watcher.failed(error);
    });
  }

  /** Resolves when nothing is under way any more. */
  async pause(): Promise<void> {
    this.running = false;
    await this.round;
  }

  private async train(): Promise<void> {
    let stride = 1;
    while (this.running) {
      const begin = performance.now();
      const losses = await readAll(Array.from({ length: stride }, () => this.session.step()));
      const elapsed = performance.now() - begin;
      this.run.losses.push(...losses);
      this.speed = (stride * BATCH * 1000) / elapsed;
      stride = Math.min(Math.max(Math.round((stride * LOOK_EVERY) / elapsed), 1), MOST_STEPS);
      if (!losses.every(Number.isFinite))
        throw new Error(
          "The loss is no number any more: the learning rate is too high. Begin a new run with a smaller one.",
        );
      if (this.session.steps - this.lastMeasured >= MEASURE_EVERY) await this.measure();
      await this.watcher.looked();
      await new Promise(requestAnimationFrame);
    }
    if (this.session.steps > this.lastMeasured) await this.measure();
    await this.watcher.looked();
  }

  private get lastMeasured(): number {
    return this.run.measured.at(-1)?.step ?? 0;
  }

  private async measure(): Promise<void> {
    this.watcher.measuring();
    const step = this.session.steps;
    this.run.measured.push({ step, accuracy: await this.session.accuracy(this.test) });
  }
}

/** The values of tensors of one element, in one read. */
async function readAll(scalars: readonly Tensor[]): Promise<number[]> {
  const together = tidy(() => concat(scalars.map((scalar) => scalar.reshape([1]))));
  for (const scalar of scalars) scalar.dispose();
  try {
    return [...(await together.data())];
  } finally {
    together.dispose();
  }
}
