/** The search for a learning rate: few seeds first, then all seeds at the best rate. */
import { expect, it } from "vitest";
import { chosenRate, RATES, runsLeft, type Wanted, wantedRuns } from "./plan";
import type { Row } from "./rows";

const rowOf = (lr: number, seed: number, loss: number, more: Partial<Row> = {}): Row => ({
  ...{ task: "sonnets", optimizer: "Adam", options: {}, version: "1", lr, seed, losses: [4, loss], diverged: false },
  ...{ checksum: "00000000", milliseconds: 1, stateBytes: 0, machine: "" },
  ...more,
});

/** Trains all that is wanted; `lossOf` is the run. */
function trained(lossOf: (run: Wanted) => number, seeds: number) {
  const rows: Row[] = [];
  const stages: number[] = [];
  for (let runs = wantedRuns(rows, seeds); runs.length > 0; runs = wantedRuns(rows, seeds)) {
    stages.push(runs[0]!.stage);
    expect(runsLeft(rows, seeds)).toBeGreaterThanOrEqual(runs.length);
    for (const run of runs) {
      const loss = lossOf(run);
      rows.push(rowOf(run.lr, run.seed, loss, { diverged: Number.isNaN(loss) }));
    }
  }
  return { rows, stages };
}

it("tries every second rate, then those beside the best, and all seeds at the best of all", () => {
  const { rows, stages } = trained(({ lr }) => Math.abs(Math.log10(lr) + 1.6), 8);
  expect(stages).toEqual([0, 1, 2, 3]);
  expect(chosenRate(rows)).toBe(0.03);
  expect(rows.filter(({ lr }) => lr === 0.03).map(({ seed }) => seed)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(rows).toHaveLength(RATES.length / 2 + 2 + 4 + 5);
  expect(runsLeft(rows, 8)).toBe(0);
});

it("more seeds decide between the best two", () => {
  const { rows } = trained(({ lr, seed }) => (lr === 0.01 ? 1 + seed : lr === 0.03 ? 1.5 : 3), 3);
  expect(chosenRate(rows)).toBe(0.03);
});

it("runs that diverge are never the best", () => {
  const { rows } = trained(({ lr }) => (lr > 0.001 ? Number.NaN : 1 - lr), 3);
  expect(chosenRate(rows)).toBe(0.001);
  expect(chosenRate(trained(() => Number.NaN, 8).rows)).toBeNull();
});

it("an error is one row", () => {
  expect(wantedRuns([rowOf(RATES[0]!, 0, 0, { losses: [], error: "no tables" })], 8)).toEqual([]);
});
