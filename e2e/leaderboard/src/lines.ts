/** What the stored rows say of one optimizer on one task. */
import { type Cell, firstRow } from "./cells";
import { bestOf, chosenRate, median } from "./plan";
import type { Row } from "./rows";
import { TARGETS } from "./targets";
import type { TaskName } from "./tasks";
import { EVERY } from "./train";

export interface Line {
  readonly task: TaskName;
  readonly optimizer: string;
  readonly lr: number;
  readonly seeds: number;
  /** Steps to the target: median over all seeds, Infinity where most do not reach it. */
  readonly steps: number;
  /** Seeds that reach the target. */
  readonly reached: number;
  /** Lowest loss of each seed, ascending. */
  readonly best: readonly number[];
  /** The run of seed 0. */
  readonly first: Row;
}

/** Undefined where nothing was trained, or every rate diverged. */
function lineOf({ of: { task, optimizer }, rows }: Cell): Line | undefined {
  const lr = chosenRate(rows);
  if (lr === null) return undefined;
  const own = rows.filter((row) => row.lr === lr);
  const steps = own.map(({ losses }) => {
    const at = losses.findIndex((loss) => loss <= TARGETS[task]);
    return at < 0 ? Number.POSITIVE_INFINITY : at * EVERY;
  });
  return {
    ...{ task, optimizer, lr, seeds: own.length, steps: median(steps) },
    reached: steps.filter(Number.isFinite).length,
    best: own.map(bestOf).sort((a, b) => a - b),
    first: firstRow(rows)!,
  };
}

/** By steps, those that do not reach the target by their best loss. */
const byRank = (a: Line, b: Line) => (a.steps === b.steps ? median(a.best) - median(b.best) : a.steps - b.steps);

/** The lines of these cells, the best first. */
export const rankedLines = (cells: readonly Cell[]): Line[] =>
  cells
    .map(lineOf)
    .filter((line) => line !== undefined)
    .sort(byRank);
