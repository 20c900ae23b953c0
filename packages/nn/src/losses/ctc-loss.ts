/** Connectionist temporal classification (Graves et al. 2006). */
import {
  arange,
  check,
  checkOptions,
  checkTensor,
  concat,
  full,
  gather,
  gatherAlong,
  logAddExp3,
  maximum,
  pad,
  pathSums,
  show,
  stack,
  Tensor,
  tensor,
  tidy,
  where,
  widened,
} from "@opt/core";
import type { Labels } from "./labels";
import { type Lengths, lengthsOf } from "./lengths";
import { checkReduction, type Reduction, reduce } from "./reduction";

export type { Lengths } from "./lengths";

export interface CtcLossOptions {
  /** The class that stands for no label. Default 0. */
  readonly blank?: number;
  /** "mean" divides each loss by its number of labels first. Default "mean". */
  readonly reduction?: Reduction;
  /** Counts sequences that are too short for their labels as 0, without a gradient. Default false. */
  readonly zeroInfinity?: boolean;
}

/** The logarithm of no probability: finite, so that sums of such have gradients. */
const NEVER = -1e30;

/** @throws OptError BAD_ARGUMENT */
export function settledCtc(where: string, options: CtcLossOptions) {
  checkOptions(where, options, { blank: "number", reduction: "string", zeroInfinity: "boolean" });
  const { blank = 0, reduction = "mean", zeroInfinity = false } = options;
  checkReduction(where, reduction);
  return { blank, reduction, zeroInfinity };
}

/**
 * -log of the probability that a sequence of classes becomes the labels, when repeated classes are joined and blanks dropped then.
 * The gradient is that of the loss; PyTorch's adds exp(logProbs), which the gradient of `logSoftmax` takes away again.
 *
 * @param logProbs `logSoftmax` of the scores: [time, batch, classes], or [time, classes]
 * @param targets labels [batch, most labels], or those of all sequences in one row; [labels] where there is no batch
 * @param inputLengths how many times of each sequence count. Inside of a compiled function pass tensors
 * @param targetLengths how many labels each sequence has
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const logProbs = randn([12, 2, 5]).logSoftmax(-1);
 * const loss = ctcLoss(logProbs, [[1, 2, 2], [3, 1, 0]], [12, 10], [3, 2]);
 */
export function ctcLoss(
  logProbs: Tensor,
  targets: Labels,
  inputLengths: Lengths,
  targetLengths: Lengths,
  options: CtcLossOptions = {},
): Tensor {
  const name = "ctcLoss";
  checkTensor(name, logProbs, "logProbs");
  const { blank, reduction, zeroInfinity } = settledCtc(name, options);
  const isBatch = logProbs.shape.length === 3;
  check(
    (isBatch || logProbs.shape.length === 2) && logProbs.shape[0]! > 0,
    "BAD_SHAPE",
    name,
    () => `logProbs must be [time, batch, classes] with at least one time, got [${logProbs.shape}].`,
    "Transpose them.",
  );
  const classes = logProbs.shape.at(-1)!;
  const isClass = Number.isInteger(blank) && blank >= 0 && blank < classes;
  check(isClass, "BAD_ARGUMENT", name, () => `blank must be a class below ${classes}, got ${show(blank)}.`, "Use 0.");
  return tidy(() => {
    const given = widened(logProbs);
    const dtype = given.dtype === "f64" ? "f64" : "f32";
    const scores = (isBatch ? given : given.unsqueeze(1)).to(dtype);
    const [times, batch] = scores.shape as [number, number];
    const labels = labelRows(targets, targetLengths, batch, isBatch, scores);
    const most = labels.shape[1]!;
    const counts = lengthsOf(name, "targetLengths", targetLengths, batch, most, scores.device);
    const ends = lengthsOf(name, "inputLengths", inputLengths, batch, times, scores.device);
    const states = interleaved(labels, counts, blank);
    const reached = forward(within(scores, inputLengths, ends), states, ends, blank);
    const losses = total(reached, counts).neg();
    const isImpossible = losses.gt(-NEVER / 2);
    const settled = zeroInfinity
      ? where(isImpossible, 0, losses)
      : losses.mul(where(isImpossible, Number.POSITIVE_INFINITY, 1));
    const shares = reduction === "mean" ? settled.div(maximum(counts, 1)) : settled;
    const result = reduce(shares, reduction).to(given.dtype);
    return isBatch || reduction !== "none" ? result : result.reshape([]);
  });
}

/** Labels as [batch, most]. */
function labelRows(targets: Labels, lengths: Lengths, batch: number, isBatch: boolean, { device }: Tensor): Tensor {
  const name = "ctcLoss";
  const given = targets instanceof Tensor ? targets : tensor(targets, { dtype: "i32", device });
  checkTensor(name, given, "targets");
  if (!isBatch && given.shape.length === 1) return given.unsqueeze(0);
  const isRows = given.shape.length === 2 && given.shape[0] === batch;
  check(
    isRows || given.shape.length === 1,
    "BAD_SHAPE",
    name,
    () => `targets must be [${batch}, labels] or all labels in one row, got [${given.shape}].`,
    "Pad the labels, or join them.",
  );
  if (isRows) return given;
  check(
    !(lengths instanceof Tensor),
    "BAD_ARGUMENT",
    name,
    () => "labels in one row need lengths as numbers.",
    "Pass targetLengths as a list, or targets [batch, labels].",
  );
  const counts = Array.from(lengths as readonly number[]);
  const sum = counts.reduce((a, b) => a + b, 0);
  check(
    sum === given.size,
    "BAD_SHAPE",
    name,
    () => `targetLengths must add up to ${given.size} labels, got ${sum}.`,
    "One length for each sequence.",
  );
  const most = Math.max(0, ...counts);
  const starts = counts.map((_, i) => counts.slice(0, i).reduce((a, b) => a + b, 0));
  const places = starts.map((start, i) =>
    Array.from({ length: most }, (_, k) => Math.min(start + k, start + counts[i]! - 1, sum - 1)),
  );
  return gather(given, tensor(places.flat(), { shape: [batch, most], dtype: "i32", device }));
}

/** blank, label, blank, label, ..., blank: [batch, 2 most + 1]. What lies beyond the labels of a sequence is blank. */
function interleaved(labels: Tensor, counts: Tensor, blank: number): Tensor {
  const { device } = labels;
  const [batch, most] = labels.shape as [number, number];
  const blanks = (columns: number) => full([batch, columns], blank, { dtype: "i32", device });
  if (most === 0) return blanks(1);
  const counted = arange(most, { device }).lt(counts.unsqueeze(1));
  const own = where(counted, labels.to("i32"), blank);
  return concat([stack([blanks(most), own], 2).reshape([batch, 2 * most]), blanks(1)], 1);
}

/** Zeros beyond the ends of sequences: what is there may be NaN, and has no gradient. */
function within(scores: Tensor, lengths: Lengths, ends: Tensor): Tensor {
  const [times] = scores.shape as [number];
  if (!(lengths instanceof Tensor) && lengths.every((length) => length === times)) return scores;
  return where(arange(times, { device: scores.device }).unsqueeze(1).lt(ends).unsqueeze(-1), scores, 0);
}

/** Log-probability of all ways to each state at the end of each sequence: [states, batch], the first state being a border. */
function forward(scores: Tensor, states: Tensor, ends: Tensor, blank: number): Tensor {
  const { device, dtype } = scores;
  const [times, batch] = scores.shape as [number, number];
  const count = states.shape[1]!;
  const emitted = maximum(gatherAlong(scores, states.expand([times, batch, count]), 2), NEVER);
  const bordered = pad(emitted.transpose(1, 2), [0, 0, 1, 0], { value: NEVER });
  // A state is reached from itself, from the one before, and past a blank from another label.
  const skips = states.ne(pad(states, [2, -2], { value: blank })).mul(states.ne(blank));
  const costs = pad(skips.to(dtype).sub(1).mul(-NEVER), [1, 0], { value: NEVER }).transpose();
  const begin = arange(count + 1, { device })
    .ne(1)
    .to(dtype)
    .mul(NEVER)
    .unsqueeze(1)
    .expand([count + 1, batch]);
  const reached = pathSums(begin, bordered, costs);
  const last = maximum(ends.sub(1), 0).expand([1, count + 1, batch]);
  return gatherAlong(reached, last, 0).squeeze(0);
}

/** Sequences end in the last label or the blank behind it: [batch]. */
function total(reached: Tensor, counts: Tensor): Tensor {
  const last = counts.mul(2).unsqueeze(0);
  const inBlank = gatherAlong(reached, last.add(1), 0);
  return logAddExp3(inBlank, gatherAlong(reached, last, 0), NEVER).squeeze(0);
}
