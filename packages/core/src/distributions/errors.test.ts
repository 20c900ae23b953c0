// Wrong parameters, values and shapes, by the codes of their errors.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { compile, type ErrorCode, type Tensor, tensor, zeros } from "../index";
import {
  AffineTransform,
  Bernoulli,
  Beta,
  Categorical,
  ComposeTransform,
  Dirichlet,
  type Distribution,
  Exponential,
  ExpTransform,
  Gamma,
  HalfNormal,
  Independent,
  klDivergence,
  Laplace,
  LogNormal,
  MultivariateNormal,
  Normal,
  OneHotCategorical,
  Poisson,
  SigmoidTransform,
  StudentT,
  TransformedDistribution,
  Uniform,
} from "./index";

const wrong = (value: unknown) => value as never;
const square = (...values: number[]) => tensor(values).reshape([2, 2]);

describe("parameters are rejected with", () => {
  it.each<[ErrorCode, string, () => unknown]>([
    ["BAD_ARGUMENT", "a scale of 0", () => new Normal(0, 0)],
    ["BAD_ARGUMENT", "a mean that is NaN", () => new Normal(Number.NaN, 1)],
    ["BAD_ARGUMENT", "one of a batch", () => new Laplace(0, tensor([1, -1]))],
    ["BAD_ARGUMENT", "bounds in the other order", () => new Uniform(1, tensor([2, 1]))],
    ["BAD_ARGUMENT", "a rate below 0", () => new Exponential(-1)],
    ["BAD_ARGUMENT", "a rate below 0", () => new Poisson(-1)],
    ["BAD_ARGUMENT", "a concentration of 0", () => new Gamma(0, 1)],
    ["BAD_ARGUMENT", "a concentration of 0", () => new Beta(1, 0)],
    ["BAD_ARGUMENT", "a concentration of 0", () => new Dirichlet(tensor([0, 1]))],
    ["BAD_ARGUMENT", "no degree of freedom", () => new StudentT(0)],
    ["BAD_ARGUMENT", "a scale of 0", () => new HalfNormal(0)],
    ["BAD_ARGUMENT", "a scale of 0", () => new LogNormal(0, 0)],
    ["BAD_ARGUMENT", "a probability above 1", () => new Bernoulli({ probs: 1.5 })],
    ["BAD_ARGUMENT", "both", () => new Bernoulli({ probs: 0.5, logits: 0 })],
    ["BAD_ARGUMENT", "neither", () => new Categorical({})],
    ["BAD_ARGUMENT", "weights below 0", () => new Categorical({ probs: tensor([1, -1]) })],
    ["BAD_ARGUMENT", "logits that are NaN", () => new OneHotCategorical({ logits: tensor([0, Number.NaN]) })],
    ["BAD_ARGUMENT", "an unknown option", () => new Normal(0, 1, wrong({ validate: false }))],
    ["BAD_ARGUMENT", "what is no number", () => new Normal(wrong("0"), 1)],
    ["BAD_ARGUMENT", "no matrix", () => new MultivariateNormal(zeros([2]), {})],
    [
      "BAD_ARGUMENT",
      "two matrices",
      () => new MultivariateNormal(zeros([2]), { scaleTril: square(1, 0, 0, 1), precisionMatrix: square(1, 0, 0, 1) }),
    ],
    [
      "BAD_ARGUMENT",
      "a matrix that is not symmetric",
      () => new MultivariateNormal(zeros([2]), { covarianceMatrix: square(1, 0, 0.5, 1) }),
    ],
    [
      "BAD_ARGUMENT",
      "a matrix that is not positive definite",
      () => new MultivariateNormal(zeros([2]), { precisionMatrix: square(1, 2, 2, 1) }),
    ],
    ["BAD_ARGUMENT", "an upper triangle", () => new MultivariateNormal(zeros([2]), { scaleTril: square(1, 1, 0, 1) })],
    [
      "BAD_ARGUMENT",
      "a diagonal below 0",
      () => new MultivariateNormal(zeros([2]), { scaleTril: square(1, 0, 0, -1) }),
    ],
    [
      "BAD_SHAPE",
      "a matrix of another size",
      () => new MultivariateNormal(zeros([3]), { scaleTril: square(1, 0, 0, 1) }),
    ],
    ["BAD_SHAPE", "no axis", () => new Dirichlet(tensor(1))],
    ["BAD_SHAPE", "no axis", () => new Categorical({ logits: tensor(1) })],
    ["BAD_SHAPE", "what does not broadcast", () => new Normal(zeros([2]), tensor([1, 1, 1]))],
    ["BAD_DTYPE", "integers", () => new Normal(tensor([1], { dtype: "i32" }), 1)],
    ["BAD_ARGUMENT", "no distribution", () => new Independent(wrong(1), 0)],
    ["BAD_ARGUMENT", "more axes than the batch has", () => new Independent(new Normal(0, 1), 1)],
    ["BAD_ARGUMENT", "no distribution", () => new TransformedDistribution(wrong(1), [])],
    ["BAD_ARGUMENT", "no transform", () => new TransformedDistribution(new Normal(0, 1), [wrong(1)])],
    [
      "BAD_SHAPE",
      "a base without the axis of its transform",
      () => new TransformedDistribution(new Normal(0, 1), new AffineTransform(0, 1, { eventDim: 1 })),
    ],
    ["BAD_ARGUMENT", "a cache of 2", () => new ExpTransform({ cacheSize: 2 })],
    ["BAD_ARGUMENT", "half an axis", () => new AffineTransform(0, 1, { eventDim: 0.5 })],
  ])("%s for %s", (code, _, make) => expectCode(code, make));

  it("names the parameter, the set and the value", () =>
    expect(() => new Normal(0, tensor([1, 2, -3]))).toThrow(
      "[Normal] scale must be positive, got -3 at 2. { validateArgs: false } skips the check.",
    ));

  it("takes them all with validateArgs: false", () => {
    const unchecked = new Normal(0, -1, { validateArgs: false });
    expect(unchecked.stddev.tolist()).toBe(-1);
    expect(new Uniform(0, 1, { validateArgs: false }).logProb(tensor([2])).tolist()).toEqual([-Infinity]);
    const coin = new Bernoulli({ probs: 2, validateArgs: false });
    expect(coin.expand([2]).probs.tolist()).toEqual([2, 2]);
    const chosen = new Categorical({ probs: tensor([1, -1, 1]), validateArgs: false });
    expect(chosen.probs.tolist()).toEqual([1, -1, 1]);
    const matrix = square(1, 1, 0, 1);
    const pair = new MultivariateNormal(zeros([2]), { scaleTril: matrix, validateArgs: false });
    expect(pair.scaleTril.tolist()).toEqual(matrix.tolist());
    const negative = tensor([-1, -1]);
    const others = [
      new Laplace(0, negative, { validateArgs: false }),
      new Exponential(negative, { validateArgs: false }),
      new Gamma(negative, 1, { validateArgs: false }),
      new Beta(negative, 1, { validateArgs: false }),
      new Poisson(negative, { validateArgs: false }),
      new StudentT(negative, 0, 1, { validateArgs: false }),
      new HalfNormal(negative, { validateArgs: false }),
      new LogNormal(0, negative, { validateArgs: false }),
    ];
    for (const of of others) expect([of.name, of.logProb(negative).shape]).toEqual([of.name, [2]]);
    const shares = new Dirichlet(negative, { validateArgs: false });
    expect(shares.mean.tolist()).toEqual([0.5, 0.5]);
    const vector = new Independent(new Normal(zeros([2]), 1), 1, { validateArgs: false });
    expect(vector.eventShape).toEqual([2]);
    const base = new Normal(0, 1, { validateArgs: false });
    const exp = new TransformedDistribution(base, [new ExpTransform()], { validateArgs: false });
    expect(exp.logProb(tensor([-1])).tolist()).toEqual([Number.NaN]);
    const vectors = new OneHotCategorical({ logits: tensor([0]), validateArgs: false });
    expect(vectors.logProb(tensor([3])).tolist()).toBe(0);
  });
});

describe("values are rejected with", () => {
  it.each<[ErrorCode, Distribution, Tensor]>([
    ["BAD_ARGUMENT", new Normal(0, 1), tensor([Number.NaN])],
    ["BAD_ARGUMENT", new Uniform(0, tensor([1, 2])), tensor([[2], [1]])],
    ["BAD_ARGUMENT", new Exponential(1), tensor([-1])],
    ["BAD_ARGUMENT", new HalfNormal(1), tensor([-1])],
    ["BAD_ARGUMENT", new LogNormal(0, 1), tensor([0])],
    ["BAD_ARGUMENT", new Gamma(1, 1), tensor([-1])],
    ["BAD_ARGUMENT", new Beta(1, 1), tensor([1.5])],
    ["BAD_ARGUMENT", new Poisson(1), tensor([0.5])],
    ["BAD_ARGUMENT", new Bernoulli({ probs: 0.5 }), tensor([2])],
    ["BAD_ARGUMENT", new Categorical({ probs: tensor([1, 1]) }), tensor([2], { dtype: "i32" })],
    ["BAD_ARGUMENT", new OneHotCategorical({ probs: tensor([1, 1]) }), tensor([1, 1])],
    ["BAD_ARGUMENT", new Dirichlet(tensor([1, 1])), tensor([0.5, 0.6])],
    ["BAD_SHAPE", new Dirichlet(tensor([1, 1])), tensor([0.5, 0.25, 0.25])],
    ["BAD_SHAPE", new Normal(zeros([2]), 1), zeros([3])],
    ["BAD_ARGUMENT", new Normal(0, 1), wrong(0.5)],
  ])("%s by %o of %o", (code, of, value) => expectCode(code, () => of.logProb(value)));

  it("BAD_ARGUMENT in replays of a compiled function, too", () => {
    const density = compile((scale: Tensor, x: Tensor) => new Normal(0, scale).logProb(x), { check: "never" });
    const [one, x] = [tensor([1]), tensor([0])];
    density(one, x);
    density(one, x);
    x.set([Number.NaN]);
    expectCode("BAD_ARGUMENT", () => density(one, x));
    x.set([0]);
    one.set([-1]);
    expectCode("BAD_ARGUMENT", () => density(one, x));
  });
});

it("what PyTorch lacks is UNSUPPORTED", () => {
  const poisson = new Poisson(1);
  expectCode("UNSUPPORTED", () => poisson.entropy());
  expectCode("UNSUPPORTED", () => poisson.cdf(tensor([1])));
  expectCode("UNSUPPORTED", () => poisson.icdf(tensor([0.5])));
  const logistic = new TransformedDistribution(new Uniform(0, 1), [new SigmoidTransform().inv]);
  for (const name of ["mean", "mode", "variance", "stddev"] as const) expectCode("UNSUPPORTED", () => logistic[name]);
});

describe("klDivergence", () => {
  const exp = (base: Distribution, ...scales: number[]) =>
    new TransformedDistribution(base, [...scales.map((scale) => new AffineTransform(0, scale)), new ExpTransform()]);

  it.each<[ErrorCode, Distribution, Distribution]>([
    ["UNSUPPORTED", new StudentT(1), new StudentT(1)],
    ["UNSUPPORTED", new Normal(0, 1), new StudentT(1)],
    ["UNSUPPORTED", exp(new Normal(0, 1)), exp(new Normal(0, 1), 2)],
    ["UNSUPPORTED", exp(new Normal(0, 1), 3), exp(new Normal(0, 1), 2)],
    ["UNSUPPORTED", new Independent(new Normal(zeros([1, 2]), 1), 1), new Independent(new Normal(zeros([1, 2]), 1), 2)],
    [
      "UNSUPPORTED",
      new MultivariateNormal(zeros([1]), { scaleTril: tensor([[1]]) }),
      new MultivariateNormal(zeros([2]), { scaleTril: square(1, 0, 0, 1) }),
    ],
    ["BAD_ARGUMENT", new Normal(0, 1), wrong(1)],
    ["BAD_ARGUMENT", wrong(1), new Normal(0, 1)],
  ])("throws %s for %o and %o", (code, p, q) => expectCode(code, () => klDivergence(p, q)));

  it("compares transforms by what they compute", () => {
    const scales = () => [new AffineTransform(tensor([1, 2]), 2), new ComposeTransform([new ExpTransform()])];
    const of = (loc: number) => new TransformedDistribution(new Normal(loc, 1), scales());
    expect(klDivergence(of(0), of(1)).tolist()).toEqual([0.5, 0.5]);
    const inverse = (loc: number) => new TransformedDistribution(new LogNormal(loc, 1), [new ExpTransform().inv]);
    expect(klDivergence(inverse(0), inverse(1)).tolist()).toBe(0.5);
    expect(klDivergence(new LogNormal(0, 1), exp(new Normal(1, 1))).tolist()).toBe(0.5);
  });
});

it("expand stretches a batch, also of vectors", () => {
  const matrix = square(1, 0, 0, 1);
  const distributions: [Distribution, readonly number[]][] = [
    [new Normal(tensor([0]), 1), []],
    [new Laplace(0, 1), []],
    [new Uniform(0, 1), []],
    [new Exponential(1), []],
    [new Poisson(1), []],
    [new Gamma(1, 1), []],
    [new Beta(1, 1), []],
    [new StudentT(1), []],
    [new LogNormal(0, 1), []],
    [new HalfNormal(1), []],
    [new Bernoulli({ logits: 0 }), []],
    [new Categorical({ logits: zeros([3]) }), []],
    [new OneHotCategorical({ logits: zeros([3]) }), [3]],
    [new Dirichlet(tensor([1, 1])), [2]],
    [new MultivariateNormal(zeros([2]), { covarianceMatrix: matrix }), [2]],
    [new Independent(new Normal(zeros([2]), 1), 1), [2]],
    [new TransformedDistribution(new Normal(0, 1), new AffineTransform(0, 2)), []],
  ];
  for (const [of, eventShape] of distributions) {
    const expanded = of.expand([4, 1]);
    expect([of.name, expanded.batchShape, expanded.eventShape]).toEqual([of.name, [4, 1], eventShape]);
    expect(expanded.sample([2]).shape).toEqual([2, 4, 1, ...eventShape]);
    expect(expanded.logProb(expanded.sample()).shape).toEqual([4, 1]);
  }
  expectCode("BAD_SHAPE", () => new Normal(zeros([2]), 1).expand([3]));
});
