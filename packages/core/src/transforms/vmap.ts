/** A function of one sample, over all samples of a batch at once. */
import { tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { check, OptError } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { checkBody, checkSynchronous } from "../host/synchronous";
import { checkAnyTensor, permute, reshape } from "../ops";
import { batching } from "../tensor/batching";
import type { Tensor } from "../tensor/tensor";
import { normalizeAxis, showShape } from "../values/shape";
import { Batched, type Level } from "./batched";
import { RULES } from "./rules";
import { eachTensor, Samples } from "./samples";

const WHERE = "vmap";

/** Where the samples lie. */
export interface VmapOptions {
  /**
   * The axis of samples of each input, or of all; null for what every sample gets whole. In a list or an object all tensors have it. Default 0.
   */
  readonly inAxes?: number | null | readonly (number | null)[];
  /** The axis of samples in each result, or in all. Default 0. */
  readonly outAxes?: number | readonly number[];
}

/** A tensor, or lists and plain objects of some. */
export type Tensors = Tensor | readonly Tensors[] | { readonly [name: string]: Tensors };

/**
 * `f` for each sample: what it gets are tensors without the axis of samples, and its results are stacked. As torch.vmap: y[i] = f(x[i]), with the
 * elements that a loop would give. Ops run once for all samples; those without a rule for it run once for each. Gradients flow through, and `grad`
 * within gives those of each sample. Random numbers drawn within are the same for all samples.
 *
 * @param f a synchronous function, which uses ops and does not ask for values
 * @returns a function of tensors with samples along `inAxes`
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE where inputs have other numbers of samples; UNSUPPORTED where f reads or overwrites elements, calls a compiled function, or recomputes
 * @example
 * const distances = vmap((a, b) => a.sub(b).square().sum().sqrt());
 * distances(rand([8, 3]), rand([8, 3])); // [8]
 * const swap = tensor([[0, 1], [1, 0]]);
 * vmap((x) => matmul(swap, x), { inAxes: 1, outAxes: 1 })(rand([2, 8])); // swap times each column
 */
export function vmap<Inputs extends readonly Tensors[], Result extends Tensors>(
  f: (...inputs: Inputs) => Result,
  options: VmapOptions = {},
): (...inputs: Inputs) => Result {
  checkBody(WHERE, f);
  checkOptions(WHERE, options, { inAxes: "any", outAxes: ["number", "array"] });
  const { inAxes = 0, outAxes = 0 } = options;
  return (...inputs) => {
    const axes = inputs.map((_, i) => axisOf("inAxes", inAxes, i, inputs.length));
    const size = samplesOf(inputs, axes);
    const level: Level = { depth: depth + 1, size };
    return tidy(() => {
      const samples = inputs.map((input, i) => eachTensor(input, (x) => sampled(x, axes[i]!, level)));
      const result = within(level, () => f(...(samples as unknown as Inputs)));
      checkSynchronous(WHERE, result);
      const count = Array.isArray(result) ? result.length : 1;
      let found = 0;
      const stacked = (part: Tensors, i: number) => {
        const axis = axisOf("outAxes", outAxes, i, count);
        checkValue(axis !== null, WHERE, "outAxes", "numbers", axis, "Results have samples.");
        return eachTensor(part, (x) => {
          found++;
          return gathered(x, axis, level);
        });
      };
      const all = Array.isArray(result) ? result.map(stacked) : stacked(result, 0);
      checkValue(found > 0, WHERE, "results", "tensors", result);
      return all as Result;
    });
  };
}

let depth = 0;

function within<Result>(level: Level, body: () => Result): Result {
  const before = batching.over;
  batching.over = over;
  depth = level.depth;
  try {
    return body();
  } finally {
    batching.over = before;
    depth = level.depth - 1;
  }
}

/** The innermost samples that an op is given. */
function over(op: (...given: never[]) => unknown, given: readonly unknown[]): unknown {
  let level: Level | undefined;
  eachTensor(given, (x) => {
    if (x instanceof Batched && x.level.depth > (level?.depth ?? 0)) level = x.level;
    return x;
  });
  if (level === undefined) return undefined;
  const samples = level;
  const run = RULES.get(op);
  const call = new Samples(op as never, given, samples);
  const whole = tidy(() => (run ? run(call) : call.oneByOne()));
  // An op may return what it was given.
  return eachTensor(whole, (x) => call.givenAs(x) ?? new Batched(x, samples));
}

function axisOf(name: string, axes: VmapOptions["inAxes"] | VmapOptions["outAxes"], i: number, count: number) {
  const isList = Array.isArray(axes);
  const isEach = !isList || axes.length === count;
  checkValue(isEach, WHERE, name, `a number, or a list of ${count}`, axes);
  const axis: unknown = isList ? axes[i] : axes;
  checkValue(axis === null || Number.isInteger(axis), WHERE, name, "whole numbers or null", axis);
  return axis as number | null;
}

/** How many samples there are. */
function samplesOf(inputs: readonly Tensors[], axes: readonly (number | null)[]): number {
  let size: number | undefined;
  for (const [i, input] of inputs.entries()) {
    const axis = axes[i]!;
    eachTensor(input, (x) => {
      checkAnyTensor(WHERE, x, `input ${i}`);
      if (axis === null) return x;
      const own = x.shape[normalizeAxis(WHERE, axis, x.shape.length)]!;
      check(
        size === undefined || size === own,
        "BAD_SHAPE",
        WHERE,
        () =>
          `inputs must have equally many samples, got ${size} and, of ${showShape(x.shape)} along axis ${axis}, ${own}.`,
        "Say where samples lie with inAxes; null for what all of them share.",
      );
      size = own;
      return x;
    });
  }
  const advice = "Leave an axis of inAxes other than null.";
  if (size === undefined) throw new OptError("BAD_ARGUMENT", WHERE, "one input must have samples, got none.", advice);
  return size;
}

function sampled(x: Tensor, axis: number | null, level: Level): Tensor {
  if (axis === null) return x;
  const from = normalizeAxis(WHERE, axis, x.shape.length);
  if (from === 0) return new Batched(reshape(x, x.shape), level);
  return new Batched(permute(x, [from, ...x.shape.map((_, i) => i).toSpliced(from, 1)]), level);
}

/** A result with its samples along an axis. */
function gathered(x: Tensor, axis: number, level: Level): Tensor {
  checkAnyTensor(WHERE, x, "a result");
  const whole = new Samples(() => x, [], level).ofAll(x);
  const to = normalizeAxis(WHERE, axis, whole.shape.length);
  if (to === 0) return reshape(whole, whole.shape);
  const others = whole.shape.map((_, i) => i).slice(1);
  return permute(whole, others.toSpliced(to, 0, 0));
}
