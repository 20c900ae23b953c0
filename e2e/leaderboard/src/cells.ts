/** The cells of the table: one optimizer on one task, with its stored rows. */
import { entrants } from "./entrants";
import { chosenRate, SEARCH_SEEDS, wantedRuns } from "./plan";
import type { Row, RunKey } from "./rows";
import { type TaskName, tasks } from "./tasks";
import { versionOf } from "./version";

export interface Cell {
  readonly of: Omit<RunKey, "lr" | "seed">;
  readonly rows: Row[];
}

/** Every optimizer on every task, also those without rows. Rows of an older version of a task are left out. */
export function cellsOf(rows: Iterable<Row>): Cell[] {
  const stored = new Map<string, Row[]>();
  for (const row of rows) {
    const cell = cellKey(row);
    stored.set(cell, [...(stored.get(cell) ?? []), row]);
  }
  return (Object.keys(tasks) as TaskName[]).flatMap((task) => {
    const version = versionOf(task);
    return entrants.map(({ name: optimizer, options }) => {
      const of = { task, optimizer, options, version };
      return { of, rows: stored.get(cellKey(of)) ?? [] };
    });
  });
}

/** Of equal cells it is equal. */
export const cellKey = ({ task, optimizer, options, version }: Cell["of"]) =>
  JSON.stringify([task, optimizer, options, version]);

/** The cells whose learning rate was searched to the end. A new optimizer has none until somebody trains it. */
export const measuredCells = (rows: Iterable<Row>): Cell[] =>
  cellsOf(rows).filter((cell) => cell.rows.length > 0 && wantedRuns(cell.rows, SEARCH_SEEDS).length === 0);

/** The cell of a run. */
export const cellOf = (cells: readonly Cell[], run: RunKey): Cell =>
  cells.find(({ of }) => cellKey(of) === cellKey(run))!;

/** The row of seed 0 at the chosen rate: the one that others repeat. */
export function firstRow(rows: readonly Row[]): Row | undefined {
  const lr = chosenRate(rows);
  return rows.find((row) => row.seed === 0 && row.lr === lr);
}
