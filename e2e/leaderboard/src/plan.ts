/** Which runs an optimizer needs on a task: a search for its learning rate with few seeds, then all seeds at the best one. */
import type { Row } from "./rows";

/** The one grid of learning rates. */
export const RATES: readonly number[] = [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3];
/** Seeds that choose between the two best rates. */
export const SEARCH_SEEDS = 3;
/** Seeds of a whole table. */
export const SEEDS = 8;

export interface Wanted {
  readonly lr: number;
  readonly seed: number;
  /** Runs of a lower stage come first, so that a run that is stopped leaves a whole table of fewer seeds. */
  readonly stage: number;
}

/** The lowest loss of a run, and Infinity where it diverged. */
export const bestOf = ({ losses, diverged }: Row): number =>
  diverged ? Number.POSITIVE_INFINITY : Math.min(...losses);

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1]!, sorted[sorted.length >> 1]!];
  return low === high ? low : (low + high) / 2;
}

/** Median of the best losses of the first seeds with this rate. Infinity without such seeds. */
function scoreOf(rows: readonly Row[], lr: number, seeds: number): number {
  const own = rows.filter((row) => row.lr === lr && row.seed < seeds);
  return own.length === 0 ? Number.POSITIVE_INFINITY : median(own.map(bestOf));
}

/** The best rates first, those that diverged left out. */
function ranked(rows: readonly Row[], rates: readonly number[], seeds: number): number[] {
  const scores = new Map(rates.map((lr) => [lr, scoreOf(rows, lr, seeds)]));
  return rates.filter((lr) => Number.isFinite(scores.get(lr))).sort((a, b) => scores.get(a)! - scores.get(b)!);
}

/** The rate of the table, null where every rate diverged. */
export function chosenRate(rows: readonly Row[]): number | null {
  const [first, second] = ranked(rows, RATES, 1);
  return (
    ranked(
      rows,
      [first, second].filter((lr) => lr !== undefined),
      SEARCH_SEEDS,
    )[0] ?? null
  );
}

/** @param rows of one optimizer on one task @returns runs that can start now, none where all are stored */
export function wantedRuns(rows: readonly Row[], seeds: number): Wanted[] {
  if (rows.some(({ error }) => error !== undefined)) return [];
  const isStored = (lr: number, seed: number) => rows.some((row) => row.lr === lr && row.seed === seed);
  const missing = (stage: number, rates: readonly number[], from: number, to: number) =>
    rates.flatMap((lr) =>
      Array.from({ length: Math.max(to - from, 0) }, (_, i) => ({ lr, seed: from + i, stage })).filter(
        ({ seed }) => !isStored(lr, seed),
      ),
    );
  const stages: (() => Wanted[])[] = [
    () =>
      missing(
        0,
        RATES.filter((_, i) => i % 2 === 0),
        0,
        1,
      ),
    () => missing(1, besideBest(rows), 0, 1),
    () => missing(2, ranked(rows, RATES, 1).slice(0, 2), 1, Math.min(SEARCH_SEEDS, seeds)),
    () =>
      missing(
        3,
        [chosenRate(rows)].filter((lr) => lr !== null),
        SEARCH_SEEDS,
        seeds,
      ),
  ];
  for (const stage of stages) {
    const runs = stage();
    if (runs.length > 0) return runs;
  }
  return [];
}

/** The rates on both sides of the best of every second one. */
function besideBest(rows: readonly Row[]): number[] {
  const [best] = ranked(
    rows,
    RATES.filter((_, i) => i % 2 === 0),
    1,
  );
  const at = RATES.indexOf(best ?? Number.NaN);
  return at < 0 ? [] : RATES.filter((_, i) => Math.abs(i - at) === 1);
}

/** Runs that are still to come, for the time left. */
export function runsLeft(rows: readonly Row[], seeds: number): number {
  const [now] = wantedRuns(rows, seeds);
  if (now === undefined) return 0;
  const inStage = wantedRuns(rows, seeds).length;
  return (
    inStage +
    [2, 4, 0, 0].slice(now.stage).reduce((sum, each) => sum + each, 0) +
    (now.stage < 3 ? seeds - SEARCH_SEEDS : 0)
  );
}
