/** What the command prints: tables for people, JSON for machines, a bar on a terminal. */
import { styleText } from "node:util";
import { SingleBar } from "cli-progress";
import type { ProgressCallback } from "../stores/progress";

/** Where a command writes: the process's own streams, or a test's. */
export interface Output {
  out(text: string): void;
  error(text: string): void;
  /** Whether a person watches the errors, and so a bar is welcome. */
  readonly isTerminal: boolean;
  /** Who shows colors. */
  readonly hasColors?: { readonly out: boolean; readonly error: boolean };
}

/** The text in a color, where it is shown. */
export function colored(
  hasColors: boolean | undefined,
  color: "green" | "red" | "cyan" | "bold",
  text: string,
): string {
  return hasColors ? styleText(color, text, { validateStream: false }) : text;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function formatBytes(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${UNITS[unit]}`;
}

/** `64MiB`, `1.5GB`, `4096`: bytes, or undefined. KB, MB, GB are powers of 1000; KiB, MiB, GiB (and K, M, G) of 1024. */
export function parseBytes(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?B)?|B)?$/i.exec(text.trim());
  if (!match) return undefined;
  const [, number, prefix, suffix] = match;
  const power = prefix ? "KMGT".indexOf(prefix.toUpperCase()) + 1 : 0;
  const base = suffix?.toLowerCase() === "b" ? 1000 : 1024;
  return Math.floor(Number(number) * base ** power);
}

/** Columns as wide as their widest cell. `right` names the columns of numbers. */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly number[] = [],
): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (right.includes(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd();
  return [line(header), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

/** A progress bar on stderr while `body` runs; nothing where no person watches. */
export async function withBar<T>(
  output: Output,
  body: (bar: { readonly progress?: ProgressCallback }) => Promise<T>,
): Promise<T> {
  if (!output.isTerminal) return body({});
  const bar = new SingleBar({
    format: "{bar} {percentage}% | {done} of {whole} | {duration_formatted} so far, {eta_formatted} left",
    stream: process.stderr,
    clearOnComplete: true,
    hideCursor: true,
  });
  let started = false;
  try {
    return await body({
      progress({ bytes, total }) {
        const texts = { done: formatBytes(bytes), whole: formatBytes(total) };
        if (!started) bar.start(total, bytes, texts);
        else bar.update(bytes, texts);
        started = true;
      },
    });
  } finally {
    bar.stop();
  }
}
