/** Who is measured: an implementation of a kind of work, one step at a time. */

export interface Costs {
  /** Milliseconds of the first step, which compiles and allocates. */
  readonly firstStep: number;
  /** From the process' start to the end of its first step, without the waits for others, in milliseconds. */
  readonly coldStart: number;
  /** The most that a step held beside what the process had before its model. */
  readonly peakBytes: number;
}

/** An implementation, set up for one work. */
export interface Session {
  /** Runs steps to their end and returns the milliseconds they took. */
  run(steps: number): Promise<number>;
  /** At most `count` values of what the steps computed, to be checked. */
  result(count: number): Promise<number[]>;
  /** What it cost beside its steps, if that is measured. */
  readonly costs?: Costs;
  close(): Promise<void>;
}

export interface Contender<Work = object> {
  readonly name: string;
  /** Largest relative difference of its result from the first contender's after the same steps; null: it computes something else (the memory limit). */
  readonly tolerance: number | null;
  /** A session, or why no session can do this work. */
  open(work: Work): Promise<Session | string>;
}

/** A session around a function that does one step and waits for it. */
export async function timed(steps: number, step: () => unknown, wait: () => unknown = () => {}): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < steps; i++) {
    const pending = step();
    if (pending instanceof Promise) await pending;
  }
  await wait();
  return performance.now() - start;
}

/** Shows times as work done per second: `perStep` units a step. */
export interface Rate {
  readonly unit: string;
  readonly perStep: number;
}

/** One table of the report: a work, who does it, and how its times are shown. */
export interface Benchmark<Work = object> {
  readonly title: string;
  /** What `--only` may call it. */
  readonly words: readonly string[];
  readonly work: Work;
  readonly contenders: readonly Contender<Work>[];
  /** By default a step's milliseconds are shown. */
  readonly rate?: Rate;
}
