/** Measures a model on data, without gradients and outside of training mode. */
import type { Communicator } from "@opt/checkpoint";
import { check, checkOptions, compile, concat, keep, noGrad, type Tensor, tidy, zeros } from "@opt/core";
import type { Module } from "@opt/nn";
import type { Metric } from "../metrics/metric";
import { batchesOf, checkMetrics, forwardOf, modelOf } from "./options";
import type { FitData, Forwarded, ForwardOptions, ParallelModel } from "./parts";
import { pauses } from "./pause";
import { Reads } from "./reads";
import { measured } from "./step";
import { addUp, samplesOf, Totals } from "./totals";

/** Options of `evaluate`. */
export interface EvaluateOptions<Batch> extends ForwardOptions<Batch> {
  readonly data: FitData<Batch>;
  readonly metrics?: readonly Metric[];
  /** false runs each batch eagerly. Default true. */
  readonly compile?: boolean;
}

/** An evaluation that is repeated: its compiled function stays. */
export class Evaluation<Batch> {
  readonly #forward: (batch: Batch) => Tensor;
  readonly #dispose: () => void = () => {};
  readonly #totals: Totals;

  constructor(
    private readonly module: Module,
    forward: (batch: Batch) => Forwarded,
    private readonly options: EvaluateOptions<Batch>,
    private readonly communicator: Communicator | undefined,
  ) {
    const { metrics = [], compile: isCompiled = true } = options;
    this.#totals = new Totals(metrics);
    const body = (batch: Batch) => noGrad(() => measured(forward(batch), metrics));
    if (isCompiled) {
      const compiled = compile(body);
      this.#forward = compiled;
      this.#dispose = () => compiled.dispose();
    } else this.#forward = (batch) => tidy(() => body(batch));
  }

  /** Means over all samples, of all ranks. */
  async run(): Promise<{ loss: number; [name: string]: number }> {
    const totals = this.#totals;
    totals.reset();
    await evaluating(this.module, async () => {
      const reads = new Reads();
      const pause = pauses();
      for await (const batch of batchesOf("evaluate", this.options.data)) {
        const samples = samplesOf(batch);
        await reads.push(this.#forward(batch), (values) => totals.add(values, samples));
        await pause();
      }
      await reads.drain();
    });
    const state = await overRanks(totals, this.communicator);
    const problem = () => "data to measure on must have batches, got none.";
    const cure = "Pass a DataLoader, a list, or a function that returns an iterable.";
    check(state.samples > 0, "BAD_ARGUMENT", "evaluate", problem, cure);
    return totals.means(state);
  }

  dispose(): void {
    this.#dispose();
  }
}

export async function overRanks(totals: Totals, communicator: Communicator | undefined) {
  if (communicator === undefined || communicator.size === 1) return totals.state();
  const states = await communicator.gather(totals.state());
  return communicator.broadcast(states && addUp(states));
}

/** Runs `body` with the module and its layers in evaluation mode, and puts each back. */
export async function evaluating<Result>(module: Module, body: () => Promise<Result>): Promise<Result> {
  const training = module.modules().filter((each) => each.training);
  module.eval();
  try {
    return await body();
  } finally {
    for (const each of training) each.training = true;
  }
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
  const kinds = { data: "any", loss: "function", forward: "function", metrics: "array", compile: "boolean" } as const;
  checkOptions("evaluate", options, kinds);
  checkMetrics("evaluate", options.metrics);
  const { module, parallel } = modelOf("evaluate", model);
  const isMeasured = options.loss !== undefined || options.forward !== undefined;
  const forward = forwardOf("evaluate", module, isMeasured ? options : { loss: () => zeros([]) });
  const evaluation = new Evaluation(module, forward, options, parallel?.communicator);
  try {
    const { loss, ...metrics } = await evaluation.run();
    return isMeasured ? { loss, ...metrics } : metrics;
  } finally {
    evaluation.dispose();
  }
}

/**
 * The model's outputs for all batches, one behind the other along the first axis. Batches are inputs, or lists that begin with one.
 *
 * @returns a tensor for you to dispose of
 * @throws OptError BAD_ARGUMENT for data without a batch, and what the model throws
 * @example
 * const logits = await predict(model, loader);
 */
export async function predict(model: Module | ParallelModel, data: FitData<unknown>): Promise<Tensor> {
  const { module } = modelOf("predict", model);
  const compiled = compile((input: never) => noGrad(() => module.forward(input) as Tensor));
  const outputs: Tensor[] = [];
  try {
    await evaluating(module, async () => {
      for await (const batch of batchesOf("predict", data)) {
        const input = Array.isArray(batch) ? batch[0] : batch;
        outputs.push(compiled(input as never));
      }
    });
    check(outputs.length > 0, "BAD_ARGUMENT", "predict", () => "data must have a batch, got none.");
    return keep(tidy(() => concat(outputs)));
  } finally {
    for (const output of outputs) output.dispose();
    compiled.dispose();
  }
}
