// Which axes are reduced, and which remain, as in PyTorch 2.13.
import "@opt/testkit"; // its matcher
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as F from "../../index";
import { all, any, squeeze, tensor } from "../../index";

const x = () =>
  tensor([
    [1, 2, 3],
    [4, 5, 9],
  ]);

/** An empty list counts as not given, but by any, all and squeeze. */
describe("no axes", () => {
  it.each([
    ["sum", 24, (keep: boolean) => x().sum([], keep)],
    ["mean", 4, (keep: boolean) => x().mean([], keep)],
    ["max", 9, (keep: boolean) => x().max([], keep)],
    ["min", 1, (keep: boolean) => x().min([], keep)],
  ] as const)("of %s are all", (_, expected, reduce) => {
    expect(reduce(false).tolist()).toBe(expected);
    expect(reduce(true).tolist()).toEqual([[expected]]);
  });

  it("have the gradient of all", () => {
    const given = x();
    given.requiresGrad = true;
    given.sum([]).backward();
    expect(given.grad!.tolist()).toEqual([
      [1, 1, 1],
      [1, 1, 1],
    ]);
  });

  it("leave each element alone in any and all", () => {
    const given = tensor([
      [0, 2],
      [0, 0],
    ]);
    for (const truth of [any, all]) {
      for (const keepDim of [false, true]) {
        expect(truth(given, [], keepDim).tolist()).toEqual([
          [false, true],
          [false, false],
        ]);
      }
    }
  });

  it("leave each axis in squeeze", () => expect(squeeze(tensor([[1, 2]]), []).shape).toEqual([1, 2]));
});

const rows = () =>
  tensor([
    [1, 5, 3],
    [4, 2, 9],
  ]);

it.each([
  ["sum", () => F.sum(rows(), 1, true), () => rows().sum(1, true), [9, 15]],
  ["mean", () => F.mean(rows(), 1, true), () => rows().mean(1, true), [3, 5]],
  ["max", () => F.max(rows(), 1, true), () => rows().max(1, true), [5, 9]],
  ["min", () => F.min(rows(), 1, true), () => rows().min(1, true), [1, 2]],
  ["argmax", () => F.argmax(rows(), 1, true), () => rows().argmax(1, true), [1, 2]],
  ["argmin", () => F.argmin(rows(), 1, true), () => rows().argmin(1, true), [0, 1]],
  ["norm", () => F.norm(rows(), 1, 1, true), () => rows().norm(1, 1, true), [9, 15]],
  [
    "std",
    () => F.std(rows(), 1, { correction: 0, keepDim: true }),
    () => rows().std(1, { correction: 0, keepDim: true }),
    [Math.sqrt(8 / 3), Math.sqrt(26 / 3)].map(Math.fround),
  ],
])("%s over an axis keeps it with extent 1, as a function and as a method", (_, call, method, expected) => {
  for (const result of [call(), method()]) {
    expect(result.shape).toEqual([2, 1]);
    expect([...result.dataSync()]).toEqual(expected);
  }
});

it.each([
  ["softmax", (x: F.Tensor) => F.softmax(x, 0)],
  ["logSoftmax", (x: F.Tensor) => F.exp(F.logSoftmax(x, 0))],
])("%s of columns adds up to 1 in each", (_, run) => {
  const x = tensor([
    [0, 0],
    [Math.log(3), 0],
  ]);
  expect(run(x).dataSync()).toAgreeWith([0.25, 0.5, 0.75, 0.5], { absolute: 1e-6, relative: 0 });
});

it("transpose exchanges the two axes that it names", () => {
  const x = F.arange(6).reshape([1, 2, 3]);
  expect(F.transpose(x, 0, 2).shape).toEqual([3, 2, 1]);
  expect(F.transpose(x, 0, 1).tolist()).toEqual([[[0, 1, 2]], [[3, 4, 5]]]);
});

it("matmul multiplies by a transposed left side", () => {
  const a = tensor([
    [1, 2],
    [3, 4],
  ]);
  const b = tensor([[1], [10]]);
  expect(F.matmul(a, b, { transposeA: true }).tolist()).toEqual([[31], [42]]);
  expect(a.matmul(b, { transposeA: true }).tolist()).toEqual([[31], [42]]);
  expect(F.matmul(a, b.transpose(), { transposeB: true }).tolist()).toEqual([[21], [43]]);
});

it("argsort keeps the order of equals, also with stable", () => {
  const x = tensor([2, 1, 2, 1, 2]);
  expect(F.argsort(x, 0, { stable: true }).tolist()).toEqual([1, 3, 0, 2, 4]);
  expect(F.argsort(x, 0, { stable: true, descending: true }).tolist()).toEqual([0, 2, 4, 1, 3]);
});

it("layerNorm adds eps to the variance", () => {
  const x = tensor([[1, 3]]); // mean 2, variance 1
  expect(F.layerNorm(x, F.ones([2]), null, 3).tolist()).toEqual([[-0.5, 0.5]]);
});

const OVER_AXES: Readonly<
  Record<string, (x: F.Tensor, axes: number | readonly number[], keepDim: boolean) => F.Tensor>
> = {
  sum: F.sum,
  mean: F.mean,
  prod: F.prod,
  max: F.max,
  min: F.min,
  logsumexp: F.logsumexp,
  nansum: F.nansum,
  nanmean: F.nanmean,
  "norm of 3": (x, axes, keepDim) => F.norm(x, 3, axes, keepDim),
  variance: (x, axes, keepDim) => F.variance(x, axes, { keepDim, correction: 0 }),
  std: (x, axes, keepDim) => F.std(x, axes, { keepDim, correction: 0 }),
};

it.each(Object.entries(OVER_AXES))(
  "%s over several axes, in any order, is that over one axis in their place",
  (_, run) => {
    const shapes = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 3, maxLength: 4 });
    const chosen = shapes.chain((shape) =>
      fc.tuple(
        fc.constant(shape),
        fc.shuffledSubarray([...shape.keys()], { minLength: 1 }),
        fc.boolean(),
        fc.boolean(),
      ),
    );
    fc.assert(
      fc.property(chosen, ([shape, axes, keepDim, isNegative]) => {
        const size = shape.reduce((a, b) => a * b, 1);
        const values = Float64Array.from({ length: size }, (_, i) => ((i * 37) % 23) / 8 - 1.3);
        const [x, y] = [0, 1].map(() => tensor(values, { shape, requiresGrad: true })) as [F.Tensor, F.Tensor];
        const rest = [...shape.keys()].filter((axis) => !axes.includes(axis));
        const count = axes.reduce((a, axis) => a * shape[axis]!, 1);
        const kept = shape.flatMap((extent, axis) => (rest.includes(axis) ? [extent] : keepDim ? [1] : []));
        const several = run(x, isNegative ? axes.map((axis) => axis - shape.length) : axes, keepDim);
        const one = run(y.permute([...rest, ...axes]).reshape([size / count, count]), 1, false).reshape(kept);
        expect(several.shape).toEqual(kept);
        for (const result of [several, one]) result.mul(result).sum().backward();
        for (const [a, b] of [
          [several, one],
          [x.grad!, y.grad!],
        ] as const)
          expect(a.dataSync()).toAgreeWith(b.dataSync(), { absolute: 1e-10, relative: 1e-10 });
      }),
      { numRuns: 40 },
    );
  },
);
