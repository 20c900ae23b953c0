/** One table of the report: a work, who does it, and how its times are shown. */
import type { Contender } from "./contender";

/** Shows times as work done per second: `perStep` units a step. */
export interface Rate {
  readonly unit: string;
  readonly perStep: number;
}

export interface Benchmark<Work = object> {
  readonly title: string;
  /** What `--only` may call it. */
  readonly words: readonly string[];
  readonly work: Work;
  readonly contenders: readonly Contender<Work>[];
  /** By default a step's milliseconds are shown. */
  readonly rate?: Rate;
}
