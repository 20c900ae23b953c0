/** The learning-rate range test (Smith 2015): one short run with a rate that grows in each step. */
import { check, checkOptions, show } from "@opt/core";
import type { Module } from "@opt/nn";
import { checkCounts } from "../check";
import { fit } from "../fit";
import type { Callback } from "../fit/events";
import { placed } from "../fit/model";
import type { FitCommunicator, FitData, FitOptimizer, ForwardOptions, ParallelModel } from "../fit/parts";
import { modesOf } from "../modes";
import { copyTree, freeTree } from "../tree";

export interface FindLearningRateOptions<Batch> extends ForwardOptions<Batch> {
  readonly data: FitData<Batch>;
  readonly optimizer: FitOptimizer;
  /** The first rate and the last. Default 1e-7 to 10. */
  readonly from?: number;
  readonly to?: number;
  /** Default 100. */
  readonly steps?: number;
  /** Tries on several ranks, as `fit` trains. */
  readonly communicator?: FitCommunicator;
}

/** What `findLearningRate` found. */
export interface LearningRates {
  readonly rates: number[];
  /** The loss at each rate, smoothed. */
  readonly losses: number[];
  /** The rate at which the loss falls fastest, before it is least. */
  readonly suggestion: number;
}

const WHERE = "findLearningRate";
/** Share of the old value in the smoothed loss. */
const KEEP = 0.9;
/** It ends when the loss is so many times the least. */
const DIVERGED = 4;
/** Rates that are so many times smaller than that of the least loss change nothing: falls there are noise. */
const FAR = 100;

/**
 * Trains for some steps with rates that grow from `from` to `to`, and puts weights, optimizer, rates and modes back. Choose a rate somewhat below
 * the least loss; `suggestion` is where the loss falls fastest. Draw it: `plot({ loss: losses }, { x: rates, log: true })`.
 *
 * @throws OptError BAD_ARGUMENT for options out of range; what the model and the loss throw
 * @example
 * const { suggestion } = await findLearningRate(model, { data, loss: crossEntropy, optimizer });
 */
export async function findLearningRate<Batch>(
  model: Module | ParallelModel,
  options: FindLearningRateOptions<Batch>,
): Promise<LearningRates> {
  const { from = 1e-7, to = 10, steps = 100, ...rest } = options;
  checkOptions(WHERE, { from, to, steps }, { from: "number", to: "number", steps: "number" });
  check(
    from > 0 && to > from,
    "BAD_ARGUMENT",
    WHERE,
    () => `rates must grow from above 0, got ${show(from)} to ${show(to)}.`,
  );
  checkCounts(WHERE, { steps }, 2);
  const { optimizer } = rest;
  const rates: number[] = [];
  const losses: number[] = [];
  // The first losses are means of too few batches to tell what is small.
  const begin = Math.floor(steps / 10);
  let mean = 0;
  let least = Number.POSITIVE_INFINITY;
  const growing: Callback = {
    onStepBegin() {
      const rate = from * (to / from) ** (rates.length / (steps - 1));
      for (const group of optimizer.groups) group.lr = rate;
      rates.push(rate);
    },
    onStepEnd({ history }, control) {
      // Devices that answer later are some losses behind.
      for (const loss of history.losses.slice(losses.length)) {
        mean = KEEP * mean + (1 - KEEP) * loss;
        const smooth = mean / (1 - KEEP ** (losses.length + 1));
        losses.push(smooth);
        if (losses.length > begin) least = Math.min(least, smooth);
        control.stop ||= Number.isNaN(smooth) || smooth > DIVERGED * least;
      }
      control.stop ||= rates.length === steps;
    },
  };
  const { module, weights } = placed(WHERE, model, options.communicator);
  const restoreModes = modesOf(module);
  const before = copyTree({
    model: Object.fromEntries(weights.namedTensors()),
    optimizer: await optimizer.stateDict(),
  });
  try {
    await fit(model, { ...rest, epochs: steps, callbacks: [growing] });
  } finally {
    weights.loadStateDict(before.model);
    optimizer.loadStateDict(before.optimizer);
    freeTree(before);
    restoreModes();
  }
  rates.length = losses.length;
  return { rates, losses, suggestion: rates[steepest(losses, rates, begin)]! };
}

/**
 * Where the loss falls fastest by the logarithm of the rate, before it is least of those from `begin` on. Lines through several losses
 * tell a fall from the noise of batches.
 */
function steepest(losses: readonly number[], rates: readonly number[], begin: number): number {
  let least = Math.min(begin, losses.length - 1);
  for (let i = begin; i < losses.length; i++) if (losses[i]! < losses[least]!) least = i; // NaN is not
  const reach = Math.max(1, begin);
  let best = Math.min(1, losses.length - 1);
  let lowest = Number.POSITIVE_INFINITY;
  for (let i = Math.min(reach, least); i <= least; i++) {
    if (rates[i]! < rates[least]! / FAR) continue;
    const slope = slopeOf(losses.slice(Math.max(0, i - reach), Math.min(i + reach, least) + 1));
    if (slope < lowest) [best, lowest] = [i, slope];
  }
  return best;
}

/** Of the line through them, by least squares. */
function slopeOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const products = values.reduce((sum, value, i) => sum + value * (i - middle), 0);
  return products / values.reduce((sum, _, i) => sum + (i - middle) ** 2, 0);
}
