/** How ops run for all samples of a batch at once, whose axis comes first. What isn't here runs sample by sample. */
import { backward, grad } from "../autograd";
import { check, OptError } from "../errors/errors";
import {
  adaptiveAvgPool2d,
  argmax,
  argsort,
  avgPool2d,
  cast,
  cholesky,
  clone,
  concat,
  conv2d,
  convTranspose2d,
  cumprod,
  cumsum,
  det,
  eigh,
  eigvalsh,
  elementwise,
  expand,
  fill,
  gather,
  inverse,
  layerNorm,
  logsumexp,
  lu,
  matmul,
  matrixExp,
  maxOver,
  maxPool2d,
  mean,
  norm,
  owned,
  permute,
  pinv,
  prod,
  qr,
  reshape,
  softmaxOf,
  sort,
  sum,
  svd,
  svdvals,
  topk,
  unfold,
} from "../ops";
import { viewAsComplex, viewAsReal } from "../ops/complex";
import { transformed } from "../ops/fft/pairs";
import { transformedReal } from "../ops/fft/spectrum";
import { lookAtInput, lookAtResult } from "../ops/look-at";
import type { Axes } from "../ops/reduce/reduce";
import { diagonals, embedded, type Groups } from "../ops/shape/diagonals";
import { cleared, regionOf, taken } from "../ops/shape/region";
import { convolve } from "../ops/windows/convolve";
import { windows } from "../ops/windows/windows";
import { Tensor } from "../tensor/tensor";
import { normalizeAxis, type Shape } from "../values/shape";
import type { Samples } from "./samples";

type Rule = (samples: Samples) => unknown;
type Op = (...given: never[]) => unknown;

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

/** A reduction over axes, the argument at `place`: by default, and of an empty list, all. */
const reducing =
  (place = 1): Rule =>
  (samples) => {
    const given = [...samples.whole(samples.given)];
    const rank = (samples.given[0] as Tensor).shape.length;
    if (rank === 0) return samples.oneByOne();
    const chosen = given[place] === undefined ? undefined : [given[place] as Axes].flat();
    const axes = (chosen?.length ? chosen : Array.from({ length: rank }, (_, i) => i)) as number[];
    given[place] = axes.map((axis) => 1 + normalizeAxis(samples.op.name, axis, rank));
    return samples.run(...given);
  };

/** One axis is moved; the place among all elements is looked for in each sample. */
const placeOf: Rule = (samples) => (samples.given[1] === undefined ? samples.oneByOne() : along(1, 0)(samples));

/** Images, in which samples become part of the batch. */
const images: Rule = (samples) => {
  const [x, ...more] = samples.given as [Tensor, ...unknown[]];
  const isShared = more.every((each) => !samples.has(each));
  if (!(samples.has(x) && isShared && x.shape.length === 4)) return samples.oneByOne();
  const [count, ...image] = x.shape;
  const y = samples.run(reshape(x.whole, [samples.level.size * count!, ...image]), ...more) as Tensor;
  return reshape(y, [samples.level.size, count!, ...y.shape.slice(1)]);
};

/** The same for each element, wherever it lies. */
const anywhere: Rule = (samples) => samples.run(...samples.whole(samples.given));

/** Groups of axes after that of samples. */
const besides = (groups: Groups): Groups => [[0], ...groups.map((axes) => axes.map((axis) => axis + 1))];

const rule = (op: Op, run: Rule): [Op, Rule] => [op, run];

const rules = (): ReadonlyMap<Op, Rule> =>
  new Map([
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
      if (!Array.isArray(shape) || shape.length < x.shape.length) return samples.oneByOne(); // which says what is wrong
      return expand(samples.aligned(x, shape.length), [samples.level.size, ...shape]);
    }),
    rule(taken as Op, (samples) => {
      const [name, x, region] = samples.given as Parameters<typeof taken>;
      const whole = samples.whole(x);
      return taken(name, whole, regionOf(whole.shape, [null, ...region.chosen]));
    }),
    rule(cleared, (samples) => {
      const [x, region] = samples.given as Parameters<typeof cleared>;
      const whole = samples.whole(x);
      return cleared(whole, regionOf(whole.shape, [null, ...region.chosen]));
    }),
    rule(diagonals, (samples) => {
      const [x, groups] = samples.given as Parameters<typeof diagonals>;
      return diagonals(samples.whole(x), besides(groups));
    }),
    rule(embedded, (samples) => {
      const [x, whole, groups] = samples.given as Parameters<typeof embedded>;
      return embedded(samples.whole(x), [samples.level.size, ...whole], besides(groups));
    }),
    rule(concat, along(1, 0)),
    rule(matmul, (samples) => {
      const [a, b, options] = samples.given as Parameters<typeof matmul>;
      if (a.shape.length < 2 || b.shape.length < 2) return samples.oneByOne();
      const rank = Math.max(a.shape.length, b.shape.length);
      return matmul(samples.aligned(a, rank), samples.aligned(b, rank), options);
    }),
    ...[sum, mean, maxOver, prod, logsumexp].map((op) => rule(op, reducing())),
    rule(norm, reducing(2)),
    rule(argmax, placeOf),
    rule(layerNorm, (samples) => {
      const isShared = samples.given.slice(1).every((each) => !samples.has(each));
      return isShared ? anywhere(samples) : samples.oneByOne();
    }),
    ...[cholesky, inverse, det, qr, eigh, eigvalsh, svd, svdvals, lu, pinv, matrixExp].map((op) => rule(op, anywhere)),
    ...[conv2d, convolve, convTranspose2d, avgPool2d, adaptiveAvgPool2d, maxPool2d, unfold].map((op) =>
      rule(op, images),
    ),
    rule(softmaxOf, along(1, -1)),
    rule(cumsum, along(1, 0)),
    rule(cumprod, along(1, 0)),
    rule(sort, along(1, -1)),
    rule(argsort, along(1, -1)),
    rule(topk, along(2, -1)),
    rule(gather, (samples) => {
      const [table] = samples.given as Parameters<typeof gather>;
      return samples.has(table) ? samples.oneByOne() : samples.run(table, ...samples.whole(samples.given.slice(1)));
    }),
    rule(windows as Op, (samples) => {
      const [kind, x, window] = samples.given as Parameters<typeof windows>;
      const count = samples.level.size * window.batch;
      const y = windows(kind, reshape(samples.whole(x), [count, ...x.shape.slice(1)]), { ...window, batch: count });
      return reshape(y, [samples.level.size, window.batch, ...y.shape.slice(1)]);
    }),
    rule(transformed as Op, anywhere),
    rule(transformedReal as Op, anywhere),
    rule(viewAsReal, anywhere),
    rule(viewAsComplex, anywhere),
    rule(lookAtInput as Op, (samples) => {
      const [x, look] = samples.given as Parameters<typeof lookAtInput>;
      lookAtInput(samples.whole(x), look);
      return null;
    }),
    rule(lookAtResult as Op, (samples) => {
      const [x, look, ...others] = samples.given as Parameters<typeof lookAtResult>;
      lookAtResult(samples.whole(x), look, ...samples.whole(others));
      return null;
    }),
    rule(backward, () => {
      const advice = "Take grad(), which returns them.";
      throw new OptError(
        "UNSUPPORTED",
        "backward",
        "gradients within vmap are not accumulated: each sample has its own.",
        advice,
      );
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

/** In one call, so that a page without vmap loads none. */
export const RULES = /* @__PURE__ */ rules();
