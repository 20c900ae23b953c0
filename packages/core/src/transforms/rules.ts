/** How ops run for all samples of a batch at once, whose axis comes first. What isn't here runs sample by sample. */
import { backward, grad } from "../autograd";
import { check, OptError } from "../errors/errors";
import {
  argmax,
  argmin,
  argsort,
  cast,
  clone,
  concat,
  cumprod,
  cumsum,
  elementwise,
  expand,
  fill,
  gather,
  matmul,
  maxOver,
  mean,
  minOver,
  owned,
  permute,
  reshape,
  slice,
  softmax,
  sort,
  sum,
  topk,
} from "../ops";
import type { Axes } from "../ops/reduce/reduce";
import { Tensor } from "../tensor/tensor";
import { normalizeAxis, type Shape } from "../values/shape";
import type { Samples } from "./samples";

type Rule = (samples: Samples) => unknown;
type Op = (...given: never[]) => unknown;

/** The number of axes that a sample of the first tensor has. */
const rankOf = ({ given }: Samples) => (given[0] as Tensor).shape.length;

/** An op along one axis, its argument at `place`; all its tensors have as many axes. */
const along =
  (place: number, fallback: number): Rule =>
  (samples) => {
    const given = [...samples.repeated(samples.given)];
    const first = Array.isArray(samples.given[0]) ? samples.given[0][0] : samples.given[0];
    const rank = (first as Tensor).shape.length;
    if (rank === 0) return samples.oneByOne();
    given[place] = 1 + normalizeAxis(samples.op.name, (given[place] as number | undefined) ?? fallback, rank);
    return samples.run(...given);
  };

/** A reduction over the axes that follow the tensor. */
const reducing: Rule = (samples) => {
  const [x, axis, ...more] = samples.whole(samples.given) as [Tensor, Axes, ...unknown[]];
  const rank = rankOf(samples);
  if (rank === 0) return samples.oneByOne();
  const axes = axis === undefined ? Array.from({ length: rank }, (_, i) => i) : [axis].flat();
  const moved = axes.map((each) => 1 + normalizeAxis(samples.op.name, each, rank));
  return samples.run(x, moved.length === 1 ? moved[0] : moved, ...more);
};

/** The same for each element, wherever it lies. */
const anywhere: Rule = (samples) => samples.run(...samples.whole(samples.given));

const rule = (op: Op, run: Rule): [Op, Rule] => [op, run];

export const RULES: ReadonlyMap<Op, Rule> = new Map([
  rule(elementwise, (samples) => {
    const [name, operands, where] = samples.given as Parameters<typeof elementwise>;
    const tensors = operands.filter((each) => each instanceof Tensor);
    const rank = Math.max(...tensors.map((each) => each.shape.length));
    const aligned = operands.map((each) => (each instanceof Tensor ? samples.aligned(each, rank) : each));
    return elementwise(name, aligned, where);
  }),
  rule(cast, anywhere),
  rule(clone, anywhere),
  rule(owned, anywhere),
  rule(reshape, (samples) => {
    const [x, shape] = samples.given as [Tensor, Shape];
    return reshape(samples.whole(x), Array.isArray(shape) ? [samples.level.size, ...shape] : shape);
  }),
  rule(permute, (samples) => {
    const [x, axes] = samples.given as [Tensor, readonly number[]];
    return permute(samples.whole(x), [0, ...axes.map((axis) => 1 + normalizeAxis("permute", axis, x.shape.length))]);
  }),
  rule(expand, (samples) => {
    const [x, shape] = samples.given as [Tensor, Shape];
    if (!Array.isArray(shape) || shape.length < x.shape.length) return expand(x.detach(), shape);
    return expand(samples.aligned(x, shape.length), [samples.level.size, ...shape]);
  }),
  rule(slice, along(3, 0)),
  rule(concat, along(1, 0)),
  rule(matmul, (samples) => {
    const [a, b, options] = samples.given as Parameters<typeof matmul>;
    if (a.shape.length < 2 || b.shape.length < 2) return samples.oneByOne();
    const rank = Math.max(a.shape.length, b.shape.length);
    return matmul(samples.aligned(a, rank), samples.aligned(b, rank), options);
  }),
  rule(sum, reducing),
  rule(mean, reducing),
  rule(maxOver, reducing),
  rule(minOver, reducing),
  rule(argmax, reducing),
  rule(argmin, reducing),
  rule(softmax, along(1, -1)),
  rule(cumsum, along(1, 0)),
  rule(cumprod, along(1, 0)),
  rule(sort, along(1, -1)),
  rule(argsort, along(1, -1)),
  rule(topk, along(2, -1)),
  rule(gather, (samples) => {
    const [table] = samples.given as Parameters<typeof gather>;
    return samples.has(table) ? samples.oneByOne() : samples.run(table, ...samples.whole(samples.given.slice(1)));
  }),
  rule(backward, () => {
    const advice = "Take grad(), which returns them.";
    throw new OptError("UNSUPPORTED", "backward", "gradients within vmap are not accumulated: each sample has its own.", advice);
  }),
  rule(grad as Op, (samples) => {
    const [output, inputs, options = {}] = samples.given as Parameters<typeof grad>;
    for (const [i, input] of inputs.entries())
      check(
        samples.has(input),
        "UNSUPPORTED",
        "grad",
        () => `within vmap input ${i} must have samples: its gradient is one for each.`,
        "Expand it before, and pass it with the axis 0: w.expand([n, ...w.shape]).",
      );
    const whole = samples.ofAll(output);
    const { gradient } = options;
    const seed = gradient === undefined ? fill(whole.shape, 1, whole.dtype, whole.device) : samples.ofAll(gradient);
    return grad(whole, samples.whole(inputs), { ...options, gradient: seed });
  }),
]);
