/** Measures a model on data, without gradients and outside of training mode. */
import { checkOptions, compile, concat, keep, noGrad, OptError, type Tensor, tidy, zeros } from "@opt/core";
import type { Module } from "@opt/nn";
import { checkMetrics, type Metric } from "../metrics/metric";
import { Reads } from "../metrics/reads";
import { evaluating } from "../modes";
import { batchesOf, type Computed, checkBatches, forwardOf, IDLE, shareOf, together } from "./inputs";
import { type PlacedModel, placed } from "./model";
import type { FitCommunicator, FitData, ForwardOptions, ParallelModel } from "./parts";
import { pauses } from "./pause";
import { Readings } from "./readings";
import { samplesOf, Totals } from "./totals";

/** Options of `evaluate`. */
export interface EvaluateOptions<Batch> extends ForwardOptions<Batch> {
  readonly data: FitData<Batch>;
  readonly metrics?: readonly Metric[];
  /** false runs each batch eagerly. Default true. */
  readonly compile?: boolean;
  /** Measures on all ranks: a `DataLoader` without a sampler is divided among them, and each sample counts once. */
  readonly communicator?: FitCommunicator;
}

/** An evaluation that is repeated: its compiled function stays. */
export interface Evaluation {
  /** Means over all samples, of all ranks. */
  run(): Promise<{ loss: number; [name: string]: number }>;
  dispose(): void;
}

/** @param all the data before they were divided among ranks */
export function evaluation<Batch>(
  { module, isInParts, communicator }: PlacedModel,
  forward: (batch: Batch) => Computed,
  { data, metrics = [], compile: isCompiled = true }: EvaluateOptions<Batch>,
  all: FitData<Batch>,
): Evaluation {
  const totals = new Totals(metrics);
  const readings = new Readings(metrics);
  const body = (batch: Batch) => noGrad(() => readings.of(forward(batch)));
  const compiled = isCompiled ? compile(body) : undefined;
  const measure = compiled ?? ((batch: Batch) => tidy(() => body(batch)));
  return {
    async run() {
      totals.reset();
      const measured = evaluating(module, async () => {
        const reads = new Reads();
        const pause = pauses();
        let last: Batch | undefined;
        for await (const batch of batchesOfAll("evaluate", data, isInParts ? communicator : undefined)) {
          if (batch === IDLE) {
            last ??= await firstOf("evaluate", all);
            measure(last).dispose();
            continue;
          }
          last = batch;
          const samples = samplesOf(batch);
          const add = (values: ArrayLike<number>) => void totals.add(values, samples, readings.isCounted === true);
          await reads.push(measure(batch), add);
          await pause();
        }
        await reads.drain();
      });
      // Ranks with the whole model wait for this one's sums alone.
      const failure = await measured.then(
        () => undefined,
        (error: unknown) => {
          if (isInParts) throw error;
          return { error };
        },
      );
      const sums = await totals.overRanks("evaluate", communicator, failure);
      checkBatches("evaluate", sums[1]! > 0, () => "data to measure on must have batches, got none.");
      return totals.means(sums);
    },
    dispose: () => compiled?.dispose(),
  };
}

/**
 * Measures a model on data: mean loss over the samples, and each metric. Numbers of several ranks add up.
 *
 * @returns `{ loss, accuracy, ... }`; without `loss` and `forward` the metrics alone
 * @throws OptError BAD_ARGUMENT for other options and for data without batches, and what the model and the loss throw
 * @example
 * console.log(await evaluate(model, { data: loader, loss: crossEntropy, metrics: [accuracy()] })); // { loss, accuracy }
 */
export async function evaluate<Batch>(
  model: Module | ParallelModel,
  options: EvaluateOptions<Batch>,
): Promise<Record<string, number>> {
  const kinds = { data: "any", loss: "function", forward: "function", metrics: "array" } as const;
  checkOptions("evaluate", options, { ...kinds, compile: "boolean", communicator: "object" });
  checkMetrics("evaluate", options.metrics);
  const own = placed("evaluate", model, options.communicator);
  const isMeasured = options.loss !== undefined || options.forward !== undefined;
  const forward = forwardOf("evaluate", own, isMeasured ? options : { loss: () => zeros([]) });
  const data = shareOf(options.data, options.communicator, false);
  const repeated = evaluation(own, forward, { ...options, data }, options.data);
  try {
    const { loss, ...metrics } = await repeated.run();
    return isMeasured ? { loss, ...metrics } : metrics;
  } finally {
    repeated.dispose();
  }
}

/**
 * The model's outputs for all batches, one behind the other along the first axis. Batches are inputs, or lists that begin with one. With a
 * `communicator` each rank computes its part of a `DataLoader`, and all ranks return all outputs.
 *
 * @returns a tensor for you to dispose of
 * @throws OptError BAD_ARGUMENT for data without a batch, also on one rank, and what the model throws
 * @example
 * const logits = await predict(model, loader);
 */
export async function predict(
  model: Module | ParallelModel,
  data: FitData<unknown>,
  options: { readonly communicator?: FitCommunicator } = {},
): Promise<Tensor> {
  checkOptions("predict", options, { communicator: "object" });
  const { module, forward, isInParts, communicator: ranks } = placed("predict", model, options.communicator);
  const { communicator } = options;
  const compiled = compile((input: never) => noGrad(() => forward(input) as Tensor));
  const outputs: Tensor[] = [];
  try {
    await evaluating(module, async () => {
      const own = shareOf(data, communicator, false);
      let last: unknown;
      for await (const batch of batchesOfAll("predict", own, isInParts ? ranks : undefined)) {
        const isIdle = batch === IDLE;
        last = isIdle ? (last ?? (await firstOf("predict", data))) : batch;
        const output = compiled((Array.isArray(last) ? last[0] : last) as never);
        if (isIdle) output.dispose();
        else outputs.push(output);
      }
    });
    const isEmpty = outputs.length === 0;
    const isOneEmpty = communicator ? await communicator.any(isEmpty) : isEmpty;
    checkBatches("predict", !isOneEmpty, () => "data must have a batch, got none.");
    const own = keep(tidy(() => concat(outputs)));
    if (communicator === undefined) return own;
    outputs.push(own);
    return keep(await communicator.allGather(own));
  } finally {
    for (const output of outputs) output.dispose();
    compiled.dispose();
  }
}

/** This rank's batches, or `IDLE` while the others, with whom it gathers weights, have some. */
function batchesOfAll<Batch>(
  where: string,
  data: FitData<Batch>,
  ranks: FitCommunicator | undefined,
): Iterable<Batch> | AsyncIterable<Batch | typeof IDLE> {
  const batches = batchesOf(where, data);
  return ranks === undefined || ranks.size === 1 ? (batches as Iterable<Batch>) : together(batches, ranks);
}

/** For a rank without a batch of its own. @throws OptError BAD_ARGUMENT */
async function firstOf<Batch>(where: string, data: FitData<Batch>): Promise<Batch> {
  for await (const batch of batchesOf(where, data)) return batch;
  throw new OptError("BAD_ARGUMENT", where, "data must have a batch on each rank, got none.", "Pass a DataLoader.");
}
