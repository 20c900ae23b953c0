/** A run's numbers for TensorBoard. */
import { checkOptions } from "@opt/core";
import { checkCounts, checkPlace } from "../check";
import type { Callback, FitState } from "../fit/events";
import { SummaryWriter, type SummaryWriterOptions } from "../tensor-board/summary-writer";

export interface TensorBoardOptions extends SummaryWriterOptions {
  /** Steps between two values of `train/loss` and `train/lr`. Default 1. */
  readonly every?: number;
  /** Also a histogram of each parameter, `weights/<name>`, after each epoch. Default false. */
  readonly histograms?: boolean;
}

/**
 * Writes `train/loss` and `train/lr` by step, the numbers of each epoch as `epoch/<name>`, and the model as text. A resumed run adds a file
 * to the folder. On several ranks the first one writes.
 *
 * @throws OptError BAD_ARGUMENT; MISSING, IO while it writes
 * @example
 * await fit(model, { data, loss: crossEntropy, optimizer, epochs: 3, callbacks: [tensorBoard("runs/a")] });
 */
export function tensorBoard(folder: string, options: TensorBoardOptions = {}): Callback {
  checkPlace("tensorBoard", "folder", folder);
  checkOptions("tensorBoard", options, { every: "number", histograms: "boolean", fileSystem: "object" });
  const { every = 1, histograms = false, ...place } = options;
  checkCounts("tensorBoard", { every });
  let writer: SummaryWriter | undefined;
  let written = 0;
  /** Losses may be read some steps later. */
  const steps = ({ history, lr }: FitState) => {
    for (; written < history.losses.length; written++) {
      if ((written + 1) % every !== 0) continue;
      writer!.scalars({ "train/loss": history.losses[written]!, "train/lr": lr }, written + 1);
    }
  };
  return {
    firstRankOnly: true,
    onTrainBegin({ history, model, step }) {
      writer = new SummaryWriter(folder, place);
      written = history.losses.length;
      writer.text("model", `\`\`\`\n${model}\n\`\`\``, step);
    },
    onStepEnd(state) {
      steps(state);
      return writer!.flushIfDue();
    },
    async onEpochEnd(state) {
      const { history, step, weights } = state;
      steps(state);
      const numbers = Object.entries(history.epochs.at(-1)!).map(([name, value]) => [`epoch/${name}`, value]);
      writer!.scalars(Object.fromEntries(numbers), step);
      if (histograms)
        for (const [name, own] of weights.namedParameters())
          writer!.histogram(`weights/${name}`, await own.data(), step);
      await writer!.flush();
    },
    onTrainEnd: () => writer?.close(),
  };
}
