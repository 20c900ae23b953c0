/** Ends a run when it has stopped improving. */
import { check, checkOptions, type OptimizerState, show, type Tensor } from "@opt/core";
import { checkCounts } from "../check";
import type { Callback, FitState } from "../fit/events";
import { isSharded } from "../fit/step";
import { copyTree, freeTree } from "../tree";
import { shortNumber } from "./format";
import { notice } from "./notice";

export interface EarlyStoppingOptions {
  /** A name of the epoch's record. Default "val_loss". */
  readonly monitor?: string;
  /** Whether lower or higher is better. Default: "min" for losses, perplexity and mae, else "max". */
  readonly mode?: "min" | "max";
  /** Epochs in a row without improvement that end the run. Default 3. */
  readonly patience?: number;
  /** By how much a number must be better to count. Default 0. */
  readonly minDelta?: number;
  /** At the end the model gets the weights of its best epoch, and `ema` its averages. Default true. */
  readonly restoreBest?: boolean;
}

const WHERE = "earlyStopping";

/** Of the best epoch. */
interface BestWeights {
  readonly weights: Readonly<Record<string, Tensor>>;
  readonly averages: Readonly<Record<string, Tensor | number>> | null;
  /** Of one that has other weights for evaluation: they are computed from its state, too. */
  readonly optimizer: OptimizerState | null;
}

/** What a checkpoint has of it. */
interface Progress {
  readonly best: number | null;
  readonly bestEpoch: number;
  readonly waited: number;
  readonly hasStopped: boolean;
  readonly kept: BestWeights | null;
}

const bestOf = ({ weights, ema, optimizer }: FitState): BestWeights => ({
  weights: Object.fromEntries(weights.namedTensors()),
  averages: ema?.stateDict() ?? null,
  optimizer: "eval" in optimizer && !isSharded(optimizer) ? (optimizer.stateDict() as OptimizerState) : null,
});

/** Whether lower numbers of this name are better. */
export const isLowerBetter = (name: string): boolean => /loss|perplexity|mae|error/.test(name);

/**
 * Ends the run when `monitor` has not become better for `patience` epochs in a row. NaN is never better.
 * Copies of the best weights are kept, and restored at the end. With an `ema` the monitored number is of the averages: they are restored, too.
 * So is the state of a schedule-free optimizer, except of a divided one. A resumed run that has more `patience` goes on.
 * A line at the end says where it stopped, which epoch was best, and whose weights the model has.
 *
 * @throws OptError BAD_ARGUMENT for options out of range, and for a `monitor` that no epoch has
 * @example
 * await fit(model, { data, validation, loss: crossEntropy, optimizer, epochs: 100, callbacks: [earlyStopping({ patience: 5 })] });
 */
export function earlyStopping(options: EarlyStoppingOptions = {}): Callback {
  const kinds = { monitor: "string", mode: "string", patience: "number", minDelta: "number" } as const;
  checkOptions(WHERE, options, { ...kinds, restoreBest: "boolean" });
  const { monitor = "val_loss", patience = 3, minDelta = 0, restoreBest = true } = options;
  const { mode = isLowerBetter(monitor) ? "min" : "max" } = options;
  check(
    mode === "min" || mode === "max",
    "BAD_ARGUMENT",
    WHERE,
    () => `mode must be "min" or "max", got ${show(mode)}.`,
  );
  checkCounts(WHERE, { patience });
  check(minDelta >= 0, "BAD_ARGUMENT", WHERE, () => `minDelta must be at least 0, got ${show(minDelta)}.`);
  let best: number | null = null;
  let bestEpoch = 0; // from 1
  let waited = 0;
  let hasStopped = false;
  let kept: BestWeights | null = null;

  const copy = (given: BestWeights | null) => {
    freeTree(kept);
    kept = copyTree(given);
  };
  const tell = (epoch: number) => {
    const stopped = hasStopped ? `stopped after epoch ${epoch}: ` : "";
    if (!hasStopped && (kept === null || bestEpoch === epoch)) return; // it has changed nothing
    const which = best === null ? "was never a number" : `was best in epoch ${bestEpoch}, ${shortNumber(best)}`;
    const weights = kept === null ? "keeps its last weights" : "has the weights of that epoch";
    notice(WHERE, `${stopped}${monitor} ${which}. The model ${weights}.`);
  };
  const isBetter = (value: number) => {
    if (best === null) return !Number.isNaN(value);
    return mode === "min" ? value < best - minDelta : value > best + minDelta;
  };
  return {
    name: WHERE,
    onTrainBegin({ hasValidation }, control) {
      const isKnown = hasValidation || !monitor.startsWith("val_");
      check(
        isKnown,
        "BAD_ARGUMENT",
        WHERE,
        () => `monitor must be a number of each epoch, got ${show(monitor)} without validation.`,
        'Give fit the option validation, or monitor: "loss".',
      );
      if (hasStopped) control.stop = waited >= patience; // resumed, perhaps with more patience
    },
    onEpochEnd(state, control) {
      const record = state.history.epochs.at(-1)!;
      const value = record[monitor];
      check(
        value !== undefined,
        "BAD_ARGUMENT",
        WHERE,
        () => `monitor must be a number of each epoch, got ${show(monitor)} among ${show(Object.keys(record))}.`,
      );
      if (isBetter(value)) {
        best = value;
        bestEpoch = state.epoch;
        waited = 0;
        if (restoreBest) copy(bestOf(state));
      } else if (++waited >= patience) control.stop = hasStopped = true;
    },
    onTrainEnd({ weights, ema, optimizer, error, epoch, placing }) {
      if (error === undefined && (placing?.communicator.rank ?? 0) === 0) tell(epoch);
      if (error === undefined && kept !== null) {
        weights.loadStateDict(kept.weights);
        if (kept.averages) ema?.loadStateDict(kept.averages);
        if (kept.optimizer) optimizer.loadStateDict(kept.optimizer);
      }
      copy(null);
      [best, bestEpoch, waited, hasStopped] = [null, 0, 0, false]; // for another run
    },
    stateDict: () => ({ best, bestEpoch, waited, hasStopped, kept }),
    loadStateDict(state) {
      const saved = state as Progress;
      ({ best, bestEpoch, waited, hasStopped } = saved);
      copy(saved.kept);
    },
  };
}
