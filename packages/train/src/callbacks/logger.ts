/** Hands the numbers of a run to a function. */
import { check, checkOptions, show } from "@opt/core";
import { checkCounts } from "../check";
import type { Callback } from "../fit/events";

export interface LoggerOptions {
  /** Steps between two calls within an epoch. Default: none, only the ends of epochs. */
  readonly every?: number;
}

/** What a logger gets: epochs done, steps done, and the numbers by name. */
export interface LogRecord {
  readonly epoch: number;
  readonly step: number;
  readonly [name: string]: number;
}

/**
 * Calls `f` with the numbers of each epoch, and with `every` also within epochs, with the means so far. On several ranks the first
 * one calls it.
 *
 * @throws OptError BAD_ARGUMENT unless `f` is a function and `every` a whole number from 1 on
 * @example
 * await fit(model, { data, loss: crossEntropy, optimizer, epochs: 3, callbacks: [logger(console.log, { every: 100 })] });
 */
export function logger(f: (record: LogRecord) => unknown, options: LoggerOptions = {}): Callback {
  check(typeof f === "function", "BAD_ARGUMENT", "logger", () => `needs a function, got ${show(f)}.`, "console.log");
  checkOptions("logger", options, { every: "number" });
  const { every } = options;
  checkCounts("logger", { every });
  return {
    firstRankOnly: true,
    onStepEnd: ({ epoch, step, epochStep, logs, lr }) =>
      every !== undefined && epochStep % every === 0 ? f({ epoch, step, ...logs, lr }) : undefined,
    onEpochEnd: ({ epoch, step, history }) => f({ epoch, step, ...history.epochs.at(-1)! }),
  };
}
