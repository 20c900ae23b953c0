/** The stored rows, one run a line. A later line of the same run replaces an earlier one. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { TaskName } from "./tasks";

export interface RunKey {
  readonly task: TaskName;
  /** An entrant's name. */
  readonly optimizer: string;
  /** Beside the learning rate. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly lr: number;
  readonly seed: number;
  /** Of the task's code. */
  readonly version: string;
}

export interface Row extends RunKey {
  /** After 0, 10, 20 ... gradients, to four digits. */
  readonly losses: readonly number[];
  /** It ended early: a loss was no number. */
  readonly diverged: boolean;
  /** Of the last weights. */
  readonly checksum: string;
  /** Of a gradient and its share of a step. */
  readonly milliseconds: number;
  readonly stateBytes: number;
  /** Where it was timed. */
  readonly machine: string;
  /** Why there is no run: the optimizer's own words. */
  readonly error?: string;
}

const FILE = fileURLToPath(new URL("../rows.jsonl", import.meta.url));

export const keyOf = ({ task, optimizer, options, lr, seed, version }: RunKey) =>
  JSON.stringify([task, optimizer, options, lr, seed, version]);

export function readRows(): Map<string, Row> {
  if (!existsSync(FILE)) return new Map();
  const lines = readFileSync(FILE, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return new Map(lines.map((line) => JSON.parse(line) as Row).map((row) => [keyOf(row), row]));
}

export function appendRow(row: Row): void {
  appendFileSync(FILE, `${JSON.stringify(row)}\n`);
}
