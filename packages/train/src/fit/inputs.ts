/** Data and losses as loops use them, checked. */
import { check, full, show, Tensor } from "@opt/core";
import type { PlacedModel } from "./model";
import type { FitCommunicator, FitData, Forwarded, ForwardOptions, SummedLoss } from "./parts";

/** A `DataLoader`, as far as it is divided among ranks. */
interface Shardable<Data> {
  shard(ranks: object, how: object): Data;
  readonly sampler?: object;
  readonly collate?: unknown;
}

const shardable = <Data>(data: Data): Shardable<Data> | undefined => {
  const loader = (data ?? {}) as Partial<Shardable<Data>>;
  return typeof loader.shard === "function" && loader.sampler === undefined ? (data as Shardable<Data>) : undefined;
};

/**
 * This rank's share of a loader that does not divide itself.
 *
 * @param even as many batches on each rank, though samples come twice
 */
export function shareOf<Data>(data: Data, communicator: FitCommunicator | undefined, even: boolean): Data {
  const isDivided = communicator !== undefined && communicator.size > 1;
  return (isDivided && shardable(data)?.shard(communicator, { even })) || data;
}

/** Whether the share that `shareOf` takes has batches of the same sizes on all ranks. */
export const isShareEven = (data: unknown): boolean => {
  const loader = shardable(data);
  return loader !== undefined && loader.collate === undefined;
};

/** What a batch gave: the mean of its loss, or the sum with its count. */
export interface Computed extends Omit<Forwarded, "loss"> {
  readonly loss: Tensor;
  readonly count: Tensor | undefined;
}

/** @throws OptError BAD_ARGUMENT for a model without a loss */
export function forwardOf<Batch>(
  where: string,
  { forward: run }: PlacedModel,
  { loss, forward }: ForwardOptions<Batch>,
): (batch: Batch) => Computed {
  check(
    (loss === undefined) !== (forward === undefined),
    "BAD_ARGUMENT",
    where,
    () => `needs loss or forward, got ${loss && forward ? "both" : "neither"}.`,
    "Such as loss: crossEntropy.",
  );
  const computed = (name: string, forwarded: Forwarded): Computed => {
    const { loss: given, output, target } = forwarded;
    const isSummed = "sum" in Object(given) && "count" in Object(given);
    const { sum, count } = (isSummed ? given : { sum: given }) as { sum: unknown; count?: unknown };
    const cure = sum instanceof Promise ? "Compute it without async and await." : undefined;
    const problem = () => `${name} must return the loss as a tensor, or { sum, count }, got ${show(given)}.`;
    check(sum instanceof Tensor, "BAD_ARGUMENT", where, problem, cure);
    if (!isSummed) return { loss: sum, count: undefined, output, target };
    const isCount = count instanceof Tensor ? count.size === 1 : Number.isFinite(count) && (count as number) >= 0;
    const isWrong = () => `the count of a loss must be a number from 0 on or one element, got ${show(count)}.`;
    check(isCount, "BAD_ARGUMENT", where, isWrong, "Such as mask.sum(), or target.size.");
    const asTensor = count instanceof Tensor ? count : full([], count as number, { device: sum.device });
    return { loss: sum, count: asTensor, output, target };
  };
  if (forward !== undefined)
    return (batch) => {
      const result = forward(batch);
      return computed("forward", "loss" in Object(result) ? (result as Forwarded) : { loss: result as SummedLoss });
    };
  return (batch) => {
    const isPair = Array.isArray(batch) && batch.length === 2;
    check(isPair, "BAD_ARGUMENT", where, () => `batches must be [input, target], got ${show(batch)}.`, "Pass forward.");
    const [input, target] = batch as unknown as [never, Tensor];
    const output = run(input) as Tensor;
    return computed("loss", { loss: loss!(output, target), output, target });
  };
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

/** @throws OptError BAD_ARGUMENT. @param what of which data */
export function checkBatches(where: string, isThere: boolean, what: () => string): void {
  check(isThere, "BAD_ARGUMENT", where, what, "Pass a DataLoader, a list, or a function that returns an iterable.");
}

/** In the place of a batch, where this rank has none any more and another one has. */
export const IDLE = Symbol("idle");

/** Batches of a rank; where they fail, it goes on without until all ranks meet. */
export async function* heldBatches<Batch>(
  batches: Iterable<Batch> | AsyncIterable<Batch>,
  hold: (error: unknown) => void,
): AsyncGenerator<Batch, void, undefined> {
  try {
    yield* batches;
    return;
  } catch (error) {
    hold(error);
  }
  for (;;) yield IDLE as Batch;
}

/**
 * This rank's batches, and `IDLE` until those of all ranks are over.
 *
 * @param begin of a loop whose first batch, after those that are skipped, must be one of each rank: else it throws on all ranks
 * @throws OptError BAD_ARGUMENT
 */
export async function* together<Batch>(
  batches: Iterable<Batch> | AsyncIterable<Batch>,
  ranks: FitCommunicator,
  begin?: { readonly where: string; readonly skipped: number },
): AsyncGenerator<Batch | typeof IDLE, void, undefined> {
  const iterator = Symbol.asyncIterator in batches ? batches[Symbol.asyncIterator]() : batches[Symbol.iterator]();
  let isOver = false;
  try {
    for (let seen = 0; ; seen++) {
      const next: IteratorResult<Batch> | undefined = isOver ? undefined : await iterator.next();
      isOver = next === undefined || next.done === true;
      const isAny = await ranks.any(!isOver);
      if (isAny && seen === begin?.skipped) {
        const isOneEmpty = await ranks.any(isOver);
        const which = begin.skipped === 0 ? "in each epoch" : "after those that are skipped";
        const whose = isOver ? "none here" : "none on another rank";
        const problem = () => `each rank needs a batch ${which}, got ${whose}.`;
        const cure = begin.skipped === 0 ? "Use fewer ranks, or smaller batches." : "Resume where an epoch ends.";
        check(!isOneEmpty, "BAD_ARGUMENT", begin.where, problem, cure);
      }
      if (!isAny) return;
      yield isOver ? IDLE : (next!.value as Batch);
    }
  } finally {
    if (!isOver) await iterator.return?.();
  }
}
