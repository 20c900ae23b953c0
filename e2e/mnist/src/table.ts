/** Results as rows of text, for the terminal and the report. */
import type { TrainingResult } from "./train";

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The mean over the last steps: a single batch says little. */
export function finalLoss(losses: readonly number[], count = 100): number {
  const last = losses.slice(-count);
  return last.reduce((sum, loss) => sum + loss, 0) / last.length;
}

export function resultTable(results: readonly TrainingResult[]): Table {
  return {
    head: ["optimizer", "final loss", "test accuracy", "seconds", "images/s"],
    rows: results.map(({ optimizer, losses, accuracies, seconds, imagesPerSecond }) => [
      optimizer,
      finalLoss(losses).toFixed(4),
      `${(100 * accuracies.at(-1)!).toFixed(2)} %`,
      seconds.toFixed(1),
      Math.round(imagesPerSecond).toLocaleString("en"),
    ]),
  };
}

/** Names to the left, numbers to the right. */
export function formatTable({ head, rows }: Table): string {
  const widths = head.map((title, column) =>
    Math.max(...[head, ...rows].map((row) => row[column]!.length), title.length),
  );
  const line = (row: readonly string[]) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join("   ");
  return [line(head), widths.map((width) => "─".repeat(width)).join("───"), ...rows.map(line)].join("\n");
}
