/** The options of `fit`, checked. */
import {
  type ClipOptions,
  check,
  checkOptions,
  type ExponentialMovingAverage,
  type Generator,
  type GradScaler,
  show,
  Tensor,
} from "@opt/core";
import type { Module } from "@opt/nn";
import { checkCounts } from "../check";
import type { Metric } from "../metrics/metric";
import { type Callback, fitEvents, hookOf } from "./events";
import type { FitData, FitOptimizer, FitSchedule, Forwarded, ForwardOptions, ParallelModel } from "./parts";

/** Options of `fit`. */
export interface FitOptions<Batch> extends ForwardOptions<Batch> {
  readonly data: FitData<Batch>;
  readonly optimizer: FitOptimizer;
  /** Of the whole run, also when it is resumed. */
  readonly epochs: number;
  /** Evaluated after each epoch, with the averaged weights if there is an `ema`. */
  readonly validation?: FitData<Batch>;
  readonly metrics?: readonly Metric[];
  /** Stepped after each optimizer step, or each epoch: see `scheduleEvery`. */
  readonly schedule?: FitSchedule;
  /** `ReduceLROnPlateau` is stepped after each epoch in any case, with `val_loss`, or `loss` without validation. Default "step". */
  readonly scheduleEvery?: "step" | "epoch";
  readonly scaler?: GradScaler;
  readonly ema?: ExponentialMovingAverage;
  /** Clips the gradients of all parameters: `{ norm: 1 }` or `{ value: 0.5 }`. */
  readonly clip?: ClipOptions;
  /** Batches of an optimizer step; the loss of each is divided by it. Default 1. */
  readonly accumulate?: number;
  /** false runs each step eagerly. Default true. */
  readonly compile?: boolean;
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
    callbacks: "array",
    resume: ["string", "boolean", "object"],
    signal: "any",
    generators: "array",
  });
  const { optimizer, epochs, accumulate = 1, scheduleEvery = "step", clip, callbacks = [], metrics } = options;
  checkMetrics(WHERE, metrics);
  check(epochs !== undefined, "BAD_ARGUMENT", WHERE, () => "epochs must be a number, got undefined.");
  checkCounts(WHERE, { epochs, accumulate });
  const noOptimizer = () => `needs an optimizer, got ${show(optimizer)}.`;
  const isOptimizer = typeof optimizer?.step === "function" && Array.isArray(optimizer.groups);
  check(isOptimizer, "BAD_ARGUMENT", WHERE, noOptimizer, "new AdamW(model.namedParameters())");
  const isKnown = scheduleEvery === "step" || scheduleEvery === "epoch";
  check(isKnown, "BAD_ARGUMENT", WHERE, () => `scheduleEvery must be "step" or "epoch", got ${show(scheduleEvery)}.`);
  if (clip !== undefined) checkOptions(`${WHERE} clip`, clip, { norm: "number", value: "number" });
  for (const callback of callbacks) checkCallback(callback);
}

/** @throws OptError BAD_ARGUMENT */
function checkCallback(callback: unknown): void {
  const hooks: readonly string[] = fitEvents.map(hookOf);
  const isObject = typeof callback === "object" && callback !== null;
  check(
    isObject,
    "BAD_ARGUMENT",
    WHERE,
    () => `callbacks must be objects, got ${show(callback)}.`,
    "{ onEpochEnd() {} }",
  );
  const unknown = Object.keys(callback as object).find((name) => /^on[A-Z_]/.test(name) && !hooks.includes(name));
  check(
    unknown === undefined,
    "BAD_ARGUMENT",
    WHERE,
    () => `there is no event ${unknown}.`,
    `Use ${hooks.join(", ")}.`,
  );
}

/** The module, and the data-parallel model around it. @throws OptError BAD_ARGUMENT */
export function modelOf(where: string, model: Module | ParallelModel): { module: Module; parallel?: ParallelModel } {
  const isParallel = typeof (model as ParallelModel | null)?.sync === "function";
  const module = isParallel ? (model as ParallelModel).module : (model as Module);
  const isModule = typeof module?.forward === "function" && typeof module.modules === "function";
  check(
    isModule,
    "BAD_ARGUMENT",
    where,
    () => `needs a model, got ${show(model)}.`,
    "A Module, or a DataParallel of one.",
  );
  const divided = () => `needs a whole model on each rank, got ${show(model)}.`;
  const cure = "Use DataParallel, or write the loop: see the guide Divide the whole model.";
  check(!isParallel || !("namedParameters" in model), "UNSUPPORTED", where, divided, cure);
  return isParallel ? { module, parallel: model as ParallelModel } : { module };
}

/** @throws OptError BAD_ARGUMENT for a model without a loss */
export function forwardOf<Batch>(
  where: string,
  model: Module,
  { loss, forward }: ForwardOptions<Batch>,
): (batch: Batch) => Forwarded {
  const one = () => `needs loss or forward, got ${loss && forward ? "both" : "neither"}.`;
  check(
    (loss === undefined) !== (forward === undefined),
    "BAD_ARGUMENT",
    where,
    one,
    "For example loss: crossEntropy.",
  );
  if (forward !== undefined)
    return (batch) => {
      const result = forward(batch);
      const forwarded = "loss" in Object(result) ? (result as Forwarded) : { loss: result as Tensor };
      checkLoss(where, "forward", forwarded.loss);
      return forwarded;
    };
  return (batch) => {
    const isPair = Array.isArray(batch) && batch.length === 2;
    check(isPair, "BAD_ARGUMENT", where, () => `batches must be [input, target], got ${show(batch)}.`, "Pass forward.");
    const [input, target] = batch as unknown as [never, Tensor];
    const output = model.forward(input) as Tensor;
    const value = loss!(output, target);
    checkLoss(where, "loss", value);
    return { loss: value, output, target };
  };
}

/** @throws OptError BAD_ARGUMENT */
function checkLoss(where: string, name: string, loss: unknown): void {
  const problem = () => `${name} must return the loss as a tensor, got ${show(loss)}.`;
  const cure = "Compute it without async and await.";
  check(loss instanceof Tensor, "BAD_ARGUMENT", where, problem, loss instanceof Promise ? cure : undefined);
}

/** @throws OptError BAD_ARGUMENT */
export function checkMetrics(where: string, metrics: readonly unknown[] = []): void {
  for (const metric of metrics) {
    const problem = () => `metrics must be a list of metrics, got ${show(metric)}.`;
    const isMetric = typeof (metric as Metric | null)?.sums === "function";
    check(isMetric, "BAD_ARGUMENT", where, problem, "For example metrics: [accuracy()].");
  }
}

/** The batches of an epoch. @throws OptError BAD_ARGUMENT */
export function batchesOf<Batch>(where: string, data: FitData<Batch>): Iterable<Batch> | AsyncIterable<Batch> {
  const batches = typeof data === "function" ? data() : data;
  const isIterable = Symbol.iterator in Object(batches) || Symbol.asyncIterator in Object(batches);
  check(
    isIterable,
    "BAD_ARGUMENT",
    where,
    () => `data must be iterable, got ${show(batches)}.`,
    "A DataLoader or a list.",
  );
  return batches;
}
