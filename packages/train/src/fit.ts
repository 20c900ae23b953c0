/** Training: the loop that is otherwise written by hand. */
import type { Module } from "@opt/nn";
import { progress } from "./callbacks/progress";
import type { FitEvent, History } from "./fit/events";
import { Loop } from "./fit/loop";
import { checkFitOptions, type FitOptions } from "./fit/options";
import type { ParallelModel } from "./fit/parts";

/** A run that has begun: a promise of its history, and its events. */
export interface FitRun extends Promise<History>, AsyncIterable<FitEvent> {}

/**
 * Trains a model, with the bits of the loop that you would write:
 *
 * ```
 * for each epoch, for each batch:
 *   loss = loss(model.forward(input), target); loss.backward()
 *   optimizer.step(); optimizer.zeroGrad(); schedule.step()
 * ```
 *
 * A loss is a mean over the samples of its batch, or `{ sum, count }`: then steps, epochs and ranks divide by the total count.
 *
 * The step is compiled once. A last, smaller batch is another trace. Await the result for the history, or iterate over it for events: the
 * run then waits for each turn of your loop, and `break` stops it. It pauses now and then, so that timers and pages go on.
 *
 * On several ranks, pass `communicator: await connect()`, or a `DataParallel` as the model: gradients, losses and metrics are those of all.
 *
 * @throws OptError BAD_ARGUMENT for options out of range and for data without batches; BAD_STATE and MISSING from `resume`; and what the
 * model, the loss, the optimizer and callbacks throw
 * @example
 * const history = await fit(model, {
 *   data: loader,
 *   loss: crossEntropy,
 *   optimizer: new AdamW(model.namedParameters()),
 *   epochs: 3,
 *   metrics: [accuracy()],
 * });
 * console.log(history.epochs.at(-1)); // { loss, accuracy, lr, seconds }
 */
export function fit<Batch>(model: Module | ParallelModel, options: FitOptions<Batch>): FitRun {
  checkFitOptions(options);
  const loop = new Loop(model, options, options.callbacks ?? [progress()]);
  // Begins after this turn: a reader of its events misses none.
  const result = Promise.resolve().then(() => loop.run());
  return Object.assign(result, { [Symbol.asyncIterator]: () => watched(loop, result) });
}

async function* watched<Batch>(loop: Loop<Batch>, result: Promise<History>): AsyncGenerator<FitEvent, void, undefined> {
  result.catch(() => {}); // thrown below
  yield* loop.hooks.events();
  await result;
}
