/** What a step sends, and how long that takes at best: the bytes and messages that the communicators count, from sizes alone. */
import { check, checkOptions, type DType, show } from "@opt/core";
import { byteSize } from "@opt/core/backend";
import { HEADING_BYTES } from "../communicator/heading";
import { piecesOf, sharesOf, travelsWhole } from "../communicator/parts";
import { BUCKET_BYTES, bucketsOf } from "../data-parallel/bucket";
import { rangesOf } from "../sharded/ranges";

export interface TrainingCostOptions {
  /** Elements of each parameter, in the model's order. */
  readonly parameters: readonly number[];
  /** Ranks that share the samples. */
  readonly ranks: number;
  /** Whose cost: parts differ by an element. Default 0. */
  readonly rank?: number;
  readonly dtype?: DType;
  readonly bucketBytes?: number;
  /** The optimizer's state is divided: the step gathers the parameters. Default false. */
  readonly sharded?: boolean;
  /** Of one message, in seconds. Default 2e-6, as of InfiniBand. */
  readonly latency?: number;
  /** Bytes a second that a rank sends. Default 25e9: 200 Gbit/s. */
  readonly bandwidth?: number;
}

/** What one rank sends in one step, and the time that takes if nothing else does. */
export interface TrainingCost {
  readonly bytes: number;
  readonly messages: number;
  /** messages x latency + bytes / bandwidth; what leaves during backward is hidden behind it. */
  readonly seconds: number;
}

const WHERE = "trainingCost";

/**
 * What data parallel training sends, as `communicator.traffic` counts it, of a model without buffers.
 *
 *     a bucket of n elements, parts p of n / W: (n - p) + (W - 1) p elements in 2 (W - 1) messages of up to 1 MiB, and a heading
 *
 * Source: the bytes of a ring all-reduce, Patarasuk and Yuan 2009, which no all-reduce of whole vectors undercuts.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const { bytes } = trainingCost({ parameters: [5000], ranks: 2 }); // 2 x (5001 / 2) x 4 bytes, for a mark for each parameter goes along, and a heading
 */
export function trainingCost(options: TrainingCostOptions): TrainingCost {
  const numbers = {
    ranks: "number",
    rank: "number",
    bucketBytes: "number",
    latency: "number",
    bandwidth: "number",
  } as const;
  checkOptions(WHERE, options, { ...numbers, parameters: "array", dtype: "string", sharded: "boolean" });
  const { parameters, ranks, rank = 0, dtype = "f32", bucketBytes = BUCKET_BYTES, sharded = false } = options;
  const { latency = 2e-6, bandwidth = 25e9 } = options;
  const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  const areSizes = Array.isArray(parameters) && parameters.every(isCount);
  check(areSizes, "BAD_ARGUMENT", WHERE, () => `parameters must be numbers of elements, got ${show(parameters)}.`);
  const isRank = isCount(ranks) && isCount(rank) && rank < ranks;
  check(isRank, "BAD_ARGUMENT", WHERE, () => `needs ranks >= 1 and one of them, got ${show(ranks)} and ${show(rank)}.`);
  const isSpeed = bucketBytes > 0 && latency >= 0 && bandwidth > 0;
  check(isSpeed, "BAD_ARGUMENT", WHERE, () => "bucketBytes and bandwidth must be above 0, latency not below.");
  const width = byteSize(dtype);
  check(width, "BAD_ARGUMENT", WHERE, () => `dtype must be one of numbers, got ${show(dtype)}.`, 'For example "f32".');
  const tensors = parameters.map((size) => ({ tensor: { size, dtype } }));
  const costs = bucketsOf(tensors, bucketBytes).map((bucket) => {
    // Each gradient brings a mark that says whether it was there.
    const elements = bucket.reduce((sum, { tensor }) => sum + tensor.size + 1, 0);
    return allReduceCost(elements, width, ranks, rank);
  });
  if (sharded) costs.push(gatherCost(parameters, width, ranks, rank));
  const sum = (of: "bytes" | "messages") => costs.reduce((total, cost) => total + cost[of], 0);
  const [bytes, messages] = [sum("bytes"), sum("messages")];
  return { bytes, messages, seconds: messages * latency + bytes / bandwidth };
}

/** Each rank says to the next one what it calls. */
const headings = (ranks: number) => (ranks > 1 ? 1 : 0);

function allReduceCost(elements: number, width: number, ranks: number, rank: number) {
  const whole = elements * width;
  if (travelsWhole(elements, width, ranks)) {
    const messages = elements > 0 ? ranks - 1 : 0;
    return { bytes: messages * whole + headings(ranks) * HEADING_BYTES, messages: messages + headings(ranks) };
  }
  const parts = sharesOf(elements, width, ranks);
  const { begin, end } = parts[rank]!;
  const pieces = parts.map((part) => piecesOf(part, width).length);
  const others = ranks - 1;
  const contributions = pieces.reduce((sum, count) => sum + count, 0) - pieces[rank]!;
  const bytes = (elements + (others - 1) * (end - begin)) * width;
  return {
    bytes: bytes + headings(ranks) * HEADING_BYTES,
    messages: contributions + others * pieces[rank]! + headings(ranks),
  };
}

function gatherCost(parameters: readonly number[], width: number, ranks: number, rank: number) {
  const own = rangesOf(parameters, ranks).reduce((sum, ranges) => sum + ranges[rank]!.end - ranges[rank]!.begin, 0);
  const messages = ranks - 1;
  // A byte more says whether the rank's own step has failed.
  const bytes = (own * width + 1) * messages + headings(ranks) * HEADING_BYTES;
  return { bytes, messages: messages + headings(ranks) };
}
