/** A table of a run's epochs, for spreadsheets. */
import type { FileSystem } from "@opt/checkpoint";
import { checkOptions } from "@opt/core";
import { checkPlace } from "../check";
import type { Callback } from "../fit/events";
import { createFile } from "../growing-file";

export interface CsvOptions {
  /** Default: this machine's disk; in a page, its own files. */
  readonly fileSystem?: FileSystem;
}

/**
 * Writes a row for each epoch: `epoch`, and the numbers of its record. The file has all epochs of a run, also after it was resumed.
 * On several ranks the first one writes.
 *
 * @throws OptError BAD_ARGUMENT without a path; MISSING, IO while it writes
 * @example
 * await fit(model, { data, loss: crossEntropy, optimizer, epochs: 3, callbacks: [csv("runs/a.csv")] });
 */
export function csv(path: string, options: CsvOptions = {}): Callback {
  checkPlace("csv", "path", path);
  checkOptions("csv", options, { fileSystem: "object" });
  return {
    firstRankOnly: true,
    async onEpochEnd({ history }) {
      const names = [...new Set(history.epochs.flatMap((record) => Object.keys(record)))];
      const rows = history.epochs.map((record, i) => [i + 1, ...names.map((name) => record[name] ?? "")]);
      const text = [["epoch", ...names], ...rows].map((row) => `${row.join(",")}\n`).join("");
      const file = await createFile(path, options.fileSystem);
      await file.append(new TextEncoder().encode(text));
      await file.close();
    },
  };
}
