/** The options of `fit`, checked. */
import {
  type ClipOptions,
  check,
  checkOptions,
  type Generator,
  type GradScaler,
  show,
  type WeightAverage,
} from "@opt/core";
import { checkCounts } from "../check";
import { checkMetrics, type Metric } from "../metrics/metric";
import { type Callback, fitEvents, hookOf } from "./events";
import type { FitCommunicator, FitData, FitOptimizer, FitSchedule, ForwardOptions } from "./parts";

/** Options of `fit`. */
export interface FitOptions<Batch> extends ForwardOptions<Batch> {
  readonly data: FitData<Batch>;
  readonly optimizer: FitOptimizer;
  /** Of the whole run, also when it is resumed. */
  readonly epochs: number;
  /** Evaluated after each epoch, with the averaged weights if there is an `ema`. */
  readonly validation?: FitData<Batch>;
  readonly metrics?: readonly Metric[];
  /**
   * Stepped after each optimizer step that the scaler did not skip, or each epoch: see `scheduleEvery`. A `ReduceLROnPlateau`, alone or
   * after a warm-up in a `SequentialLR`, gets the `val_loss` of each epoch, or `loss` without validation.
   */
  readonly schedule?: FitSchedule;
  /** A `ReduceLROnPlateau` goes by epochs in any case. Default "step". */
  readonly scheduleEvery?: "step" | "epoch";
  readonly scaler?: GradScaler;
  readonly ema?: WeightAverage;
  /** Clips the gradients of the parameters that the optimizer trains: `{ norm: 1 }` or `{ value: 0.5 }`. */
  readonly clip?: ClipOptions;
  /** Batches of an optimizer step. Their gradients add up and are divided once, as those of one batch of all their samples. Default 1. */
  readonly accumulate?: number;
  /** false runs each step eagerly. Default true. */
  readonly compile?: boolean;
  /**
   * Trains on all ranks: of `connect()`. A `DataLoader` without a sampler is divided among them, by `shard`; other data are this rank's own.
   * Gradients are those of all samples, losses and metrics of epochs are those of all samples, and all ranks end after the same step.
   */
  readonly communicator?: FitCommunicator;
  /** Default: `[progress()]`. */
  readonly callbacks?: readonly Callback[];
  /** A folder of checkpoints to go on from, or a file of one; true: the folder of the callback `checkpoints`, or from the start where it has none. */
  readonly resume?: string | boolean | Blob;
  /** Ends the run after the present step. A resumed run goes on. */
  readonly signal?: AbortSignal;
  /** Further random generators whose state belongs to the run. The default one and the loader's own are saved in any case. */
  readonly generators?: readonly Generator[];
}

export const WHERE = "fit";

/** @throws OptError BAD_ARGUMENT */
export function checkFitOptions<Batch>(options: FitOptions<Batch>): void {
  checkOptions(WHERE, options, {
    data: "any",
    loss: "function",
    forward: "function",
    optimizer: "object",
    epochs: "number",
    validation: "any",
    metrics: "array",
    schedule: "object",
    scheduleEvery: "string",
    scaler: "object",
    ema: "object",
    clip: "object",
    accumulate: "number",
    compile: "boolean",
    communicator: "object",
    callbacks: "array",
    resume: ["string", "boolean", "object"],
    signal: "any",
    generators: "array",
  });
  const { optimizer, epochs, accumulate, scheduleEvery = "step", clip, callbacks = [], metrics } = options;
  checkMetrics(WHERE, metrics);
  check(epochs !== undefined, "BAD_ARGUMENT", WHERE, () => "epochs must be a number, got undefined.");
  checkCounts(WHERE, { epochs, accumulate });
  const isOptimizer = typeof optimizer?.step === "function" && Array.isArray(optimizer.groups);
  check(
    isOptimizer,
    "BAD_ARGUMENT",
    WHERE,
    () => `needs an optimizer, got ${show(optimizer)}.`,
    "new AdamW(model.namedParameters())",
  );
  check(
    optimizer.needsClosure !== true,
    "BAD_ARGUMENT",
    WHERE,
    () => `has no closure to give, got ${show(optimizer)}, whose steps call one.`,
    "Write the loop: await optimizer.step(closure).",
  );
  const isKnown = scheduleEvery === "step" || scheduleEvery === "epoch";
  check(isKnown, "BAD_ARGUMENT", WHERE, () => `scheduleEvery must be "step" or "epoch", got ${show(scheduleEvery)}.`);
  if (clip !== undefined) checkOptions(`${WHERE} clip`, clip, { norm: "number", value: "number" });
  const hooks: readonly string[] = fitEvents.map(hookOf);
  for (const callback of callbacks as readonly unknown[]) {
    const isObject = typeof callback === "object" && callback !== null;
    check(
      isObject,
      "BAD_ARGUMENT",
      WHERE,
      () => `callbacks must be objects, got ${show(callback)}.`,
      "{ onEpochEnd() {} }",
    );
    const unknown = Object.keys(callback).find((name) => /^on[A-Z_]/.test(name) && !hooks.includes(name));
    const cure = `Use ${hooks.join(", ")}.`;
    check(unknown === undefined, "BAD_ARGUMENT", WHERE, () => `there is no event ${unknown}.`, cure);
  }
}
