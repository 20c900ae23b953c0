/** Saves a run on its way, so that `resume` goes on with the same bits. */
import type { FileSystem } from "@opt/checkpoint";
import { check, checkOptions, show } from "@opt/core";
import { checkCounts, checkPlace } from "../check";
import type { Callback, FitControl, FitState } from "../fit/events";
import { isBreak } from "../fit/proof";
import { elsewhere, ifThere } from "../fit/resume";
import { isLowerBetter } from "./early-stopping";

export interface CheckpointsOptions {
  /** Also after so many steps, counted from the run's first. Default: at the end of each epoch only. */
  readonly every?: number;
  /** How many of the newest steps stay, and how many of the best. Default: the newest one. */
  readonly keep?: { readonly last?: number; readonly best?: number };
  /**
   * Leaves out what does not train and has the numbers that it had when the run began: of an adapter's run, the base. `resume` then needs
   * a model with the same base, and throws BAD_STATE for another one. Weights that ranks divide are saved. Default false.
   */
  readonly trainable?: boolean;
  /** By which number of an epoch `best` chooses. Default "val_loss". */
  readonly monitor?: string;
  /** Default: this machine's disk; in a page, its own files. */
  readonly fileSystem?: FileSystem;
}

const WHERE = "checkpoints";

/**
 * Saves everything of a run into `<folder>/step-<n>` at the end of each epoch: weights, optimizer, averages, schedule, scaler, the place in
 * the data, random generators, history, and the state of callbacks. `loadCheckpoint` reads it; `fit(..., { resume: true })` goes on from it.
 * Also where a callback ends the run. It saves after the hooks of the other callbacks, wherever it stands among them.
 * A step exists whole or not at all. Ranks save together.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; BAD_STATE for a folder with later steps, of another run; what `saveCheckpoint` throws
 * @example
 * const callbacks = [checkpoints("runs/fit", { every: 500, keep: { last: 2, best: 1 } })];
 * await fit(model, { data, validation, loss: crossEntropy, optimizer, epochs: 10, callbacks, resume: true });
 */
export function checkpoints(folder: string, options: CheckpointsOptions = {}): Callback {
  checkPlace(WHERE, "folder", folder);
  checkOptions(WHERE, options, {
    ...{ every: "number", keep: "object", trainable: "boolean", monitor: "string", fileSystem: "object" },
  });
  const { every, keep = {}, trainable = false, monitor = "val_loss", fileSystem } = options;
  checkOptions(`${WHERE} keep`, keep, { last: "number", best: "number" });
  const { last = 1, best } = keep;
  checkCounts(WHERE, { every, last, best });
  const retention = {
    last,
    ...(best && { best: { value: monitor, count: best, highest: !isLowerBetter(monitor) } }),
  };
  const save = async (state: FitState, control: FitControl, isEpoch: boolean) => {
    const { saveCheckpoint } = await import("@opt/checkpoint");
    const { placing } = state;
    const contents = await state.contents({ trainable });
    const isFirst = (placing?.communicator.rank ?? 0) === 0;
    const value = isEpoch ? state.history.epochs.at(-1)?.[monitor] : undefined;
    const monitored = { [monitor]: Number.isFinite(value) ? value : null };
    const { path } = await saveCheckpoint(
      folder,
      isFirst ? { ...contents, values: { ...contents.values, ...monitored } } : contents,
      {
        overwrite: true,
        keep: retention,
        ...elsewhere(fileSystem),
        ...(placing ?? { layout: { mesh: { shape: [1], axes: ["rank"] }, tensors: { "*": "replicate" } } }),
      },
    );
    await control.saved(path);
  };
  return {
    saves: { folder, fileSystem, trainable },
    async onTrainBegin({ step }) {
      const { inspectCheckpoint } = await import("@opt/checkpoint");
      const found = await ifThere(inspectCheckpoint(folder, elsewhere(fileSystem)));
      const { step: newest = 0 } = found ?? {};
      check(
        newest <= step,
        "BAD_STATE",
        WHERE,
        () => `${show(folder)} must have no later steps, got step ${newest} where the run is at ${step}.`,
        "Go on from it with resume: true, remove the folder, or choose another one.",
      );
    },
    onStepEnd: (state, control) =>
      control.stop || isBreak(state.step) || (every !== undefined && state.step % every === 0)
        ? save(state, control, false)
        : undefined,
    onEpochEnd: (state, control) => save(state, control, true),
  };
}
