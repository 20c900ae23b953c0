/** What a rank has recorded of a run, and how two lines are compared. */
import { existsSync, readFileSync } from "node:fs";
import type { LedgerLine } from "@opt/checkpoint";

/** Lines of a rank, in the order in which it recorded them. */
export type Lines = readonly LedgerLine[];

/** What causes are told from. */
export interface Differing {
  readonly whole: LedgerLine;
  readonly broken: LedgerLine;
  /** Names that differ, causes before effects. */
  readonly names: readonly string[];
  /** All lines of the run that was not broken. */
  readonly lines: Lines;
  /** This part was equal before, so the difference came up while it trained. */
  readonly isLate: boolean;
  /** The run had not been broken yet. */
  readonly isUnbroken: boolean;
}

export const entriesOf = ({ tensors, values }: LedgerLine): Readonly<Record<string, unknown>> => ({
  ...tensors,
  ...values,
});

export function linesOf(file: string): Lines {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}
