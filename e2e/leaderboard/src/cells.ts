/** The cells of the table: one optimizer on one task, with its stored rows. */
import { entrants } from "./entrants";
import { chosenRate } from "./plan";
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

const cellKey = ({ task, optimizer, options, version }: Cell["of"]) =>
  JSON.stringify([task, optimizer, options, version]);

/** The cell of a run. */
export const cellOf = (cells: readonly Cell[], run: RunKey): Cell =>
  cells.find(({ of }) => cellKey(of) === cellKey(run))!;

/** The row of seed 0 at the chosen rate: the one that others repeat. */
export function firstRow(rows: readonly Row[]): Row | undefined {
  const lr = chosenRate(rows);
  return rows.find((row) => row.seed === 0 && row.lr === lr);
}
