// Samples by seeds: their distribution (Kolmogorov and Smirnov), their gradients, and compiled functions.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { compile, Generator, grad, parameter, recompute, type Shape, type Tensor, tensor, tidy, vmap } from "../index";
import {
  AffineTransform,
  Bernoulli,
  Beta,
  Categorical,
  Dirichlet,
  type Distribution,
  Exponential,
  ExpTransform,
  Gamma,
  HalfNormal,
  Independent,
  Laplace,
  LogNormal,
  MultivariateNormal,
  Normal,
  OneHotCategorical,
  Poisson,
  SigmoidTransform,
  StudentT,
  TanhTransform,
  TransformedDistribution,
  Uniform,
} from "./index";
import { standardGammaSlope } from "./sampling/standard-gamma";

const COUNT = 20_000;
/** Of so many numbers, one seed of a million is further off. */
const FURTHEST = 2.7 / Math.sqrt(COUNT);

const f64 = (...values: number[]) => tensor(values, { dtype: "f64" });
const seeded = (seed = 7) => ({ generator: new Generator(seed) });
const drawn = (of: Distribution, shape: Shape = [COUNT]) => of.sample(shape, seeded());
const numbers = (x: Tensor) => Array.from(x.dataSync());

/** A distribution function of many numbers at once. */
type Cdf = (xs: number[]) => number[];

/** The largest distance of the samples' distribution function from `cdf`. */
function distance(samples: readonly number[], cdf: Cdf): number {
  const expected = cdf(samples.toSorted((a, b) => a - b));
  return Math.max(...expected.map((p, i) => Math.max(Math.abs(p - i / COUNT), Math.abs(p - (i + 1) / COUNT))));
}

const each =
  (f: (x: number) => number): Cdf =>
  (xs) =>
    xs.map(f);
const ofNormal = (xs: number[], loc = 0, scale = 1) => numbers(new Normal(f64(loc), scale).cdf(f64(...xs)));

/** Of whole shapes: 1 - e^-x (1 + x + x^2 / 2 + ...). */
const gammaCdf = (shape: number) =>
  each((x) => {
    let [term, sum] = [Math.exp(-x), Math.exp(-x)];
    for (let i = 1; i < shape; i++) sum += term *= x / i;
    return 1 - sum;
  });
/** 2 Phi(sqrt(2 x)) - 1, of shape 1/2. */
const halfGammaCdf: Cdf = (xs) => ofNormal(xs.map((x) => Math.sqrt(2 * x))).map((p) => 2 * p - 1);

describe("samples have the distribution", () => {
  it.each<[string, Distribution, Cdf]>([
    ["Normal", new Normal(1, 2), (xs) => ofNormal(xs, 1, 2)],
    ["Uniform", new Uniform(-1, 3), each((x) => (x + 1) / 4)],
    ["Laplace", new Laplace(1, 2), each((x) => (x < 1 ? Math.exp((x - 1) / 2) / 2 : 1 - Math.exp((1 - x) / 2) / 2))],
    ["Exponential", new Exponential(2), each((x) => 1 - Math.exp(-2 * x))],
    ["HalfNormal", new HalfNormal(1), (xs) => ofNormal(xs).map((p) => 2 * p - 1)],
    ["LogNormal", new LogNormal(0, 1), (xs) => ofNormal(xs.map(Math.log))],
    ["Gamma of 1", new Gamma(1, 2), (xs) => gammaCdf(1)(xs.map((x) => 2 * x))],
    ["Gamma of 3", new Gamma(3, 1), gammaCdf(3)],
    ["Gamma of 40", new Gamma(f64(40).reshape([]), 1), gammaCdf(40)],
    ["Gamma of 1/2", new Gamma(0.5, 1), halfGammaCdf],
    ["Beta of 1/2", new Beta(0.5, 0.5), each((x) => (2 / Math.PI) * Math.asin(Math.sqrt(x)))],
    ["Beta of 1 and 3", new Beta(1, 3), each((x) => 1 - (1 - x) ** 3)],
    ["StudentT of 2", new StudentT(2), each((x) => 0.5 + x / (2 * Math.sqrt(2 + x * x)))],
    ["StudentT of 1", new StudentT(1, 1, 2), each((x) => 0.5 + Math.atan((x - 1) / 2) / Math.PI)],
  ])("%s", (_, of, cdf) => expect(distance(numbers(drawn(of)), cdf)).toBeLessThan(FURTHEST));

  it("Dirichlet, of which each share is of a beta distribution", () => {
    const shares = drawn(new Dirichlet(tensor([0.5, 1, 2])));
    const sums = numbers(shares.sum(-1));
    expect(sums.every((sum) => Math.abs(sum - 1) < 1e-6)).toBe(true);
    const second = numbers(shares.select(-1, 1));
    expect(
      distance(
        second,
        each((x) => 1 - (1 - x) ** 2.5),
      ),
    ).toBeLessThan(FURTHEST);
    // So small that a product of float32 would be 0.
    expect(numbers(drawn(new Dirichlet(tensor([0.001, 0.001])), [100])).every(Number.isFinite)).toBe(true);
  });

  it("Gamma and Beta, which stay in their support", () => {
    expect(Math.min(...numbers(drawn(new Gamma(0.01, 1))))).toBeGreaterThan(0);
    const shares = numbers(drawn(new Beta(0.02, 0.02)));
    expect([Math.min(...shares) > 0, Math.max(...shares) < 1]).toEqual([true, true]);
  });

  it("MultivariateNormal", () => {
    const covarianceMatrix = f64(2, 0.5, 0.5, 1).reshape([2, 2]);
    const samples = drawn(new MultivariateNormal(f64(1, -1), { covarianceMatrix }));
    const off = samples.sub(f64(1, -1));
    const found = off.matmul(off, { transposeA: true }).div(COUNT);
    expect(numbers(found)).toAgreeWith([2, 0.5, 0.5, 1], { absolute: 0.06, relative: 0 });
    expect(numbers(off.mean(0))).toAgreeWith([0, 0], { absolute: 0.04, relative: 0 });
  });

  const shareOf = (samples: Tensor, value: number) => numbers(samples).filter((x) => x === value).length / COUNT;

  it("Bernoulli, Categorical and OneHotCategorical", () => {
    expect(shareOf(drawn(new Bernoulli({ probs: 0.3 })), 1)).toBeCloseTo(0.3, 1.7);
    const probs = tensor([1, 3, 0, 4]);
    const indices = drawn(new Categorical({ probs }));
    expect(indices.dtype).toBe("i32");
    const shares = [0, 1, 2, 3].map((i) => shareOf(indices, i));
    expect(shares).toAgreeWith([1 / 8, 3 / 8, 0, 4 / 8], { absolute: 0.015, relative: 0 });
    const vectors = drawn(new OneHotCategorical({ logits: tensor([0, Math.log(3)]) }));
    expect(numbers(vectors.mean(0))).toAgreeWith([0.25, 0.75], { absolute: 0.015, relative: 0 });
  });

  it.each([0, 0.5, 4, 9.9, 10, 60, 3000])("Poisson of %d", (rate) => {
    const samples = drawn(new Poisson(rate));
    const mean = numbers(samples).reduce((a, b) => a + b, 0) / COUNT;
    const variance = numbers(samples).reduce((a, b) => a + (b - rate) ** 2, 0) / COUNT;
    expect(Math.abs(mean - rate)).toBeLessThanOrEqual(4.5 * Math.sqrt(rate / COUNT));
    expect(Math.abs(variance - rate)).toBeLessThanOrEqual(6 * Math.sqrt((rate + 2 * rate * rate) / COUNT));
    if (rate > 0 && rate < 61) {
      const mode = Math.floor(rate);
      const share = Math.exp(new Poisson(f64(rate)).logProb(f64(mode)).dataSync()[0]!);
      expect(Math.abs(shareOf(samples, mode) - share)).toBeLessThan(4.5 * Math.sqrt(share / COUNT));
    }
  });

  it("of all in a batch, each with its own parameters", () => {
    const samples = drawn(new Independent(new Normal(tensor([[-10], [0], [10]]), tensor([1, 2])), 1), [500]);
    expect(samples.shape).toEqual([500, 3, 2]);
    expect(numbers(samples.mean(0).mean(-1))).toAgreeWith([-10, 0, 10], { absolute: 0.25, relative: 0 });
  });
});

describe("gradients of samples", () => {
  it.each([
    ["Normal", (loc: Tensor, scale: Tensor) => new Normal(loc, scale)],
    ["Laplace", (loc: Tensor, scale: Tensor) => new Laplace(loc, scale)],
    ["StudentT", (loc: Tensor, scale: Tensor) => new StudentT(3, loc, scale)],
  ] as const)("%s moves with its place and its width", (_, make) => {
    const [loc, scale] = [f64(1), f64(2)];
    for (const each of [loc, scale]) each.requiresGrad = true;
    const value = make(loc, scale).rsample([], seeded());
    const [ofLoc, ofScale] = grad(value.sum(), [loc, scale]);
    expect(numbers(ofLoc!)).toEqual([1]);
    expect(numbers(ofScale!)).toAgreeWith([(value.dataSync()[0]! - 1) / 2], { absolute: 1e-12, relative: 1e-12 });
  });

  it("Gamma: as PyTorch's formula of a sample, divided by the rate", () => {
    const [shape, rate] = [f64(0.4, 3, 20), f64(2, 2, 2)];
    for (const each of [shape, rate]) each.requiresGrad = true;
    const value = new Gamma(shape, rate).rsample([], seeded());
    const [ofShape, ofRate] = grad(value.sum(), [shape, rate]);
    const slope = standardGammaSlope(shape.detach(), value.detach().mul(2)).div(2);
    expect(numbers(ofShape!)).toAgreeWith(numbers(slope), { absolute: 0, relative: 1e-12 });
    expect(numbers(ofRate!)).toAgreeWith(numbers(value.detach().div(-2)), { absolute: 0, relative: 1e-12 });
  });

  /** The mean of the slopes is the slope of the mean. */
  const meanSlopes = (parameters: Tensor[], loss: (x: Tensor) => Tensor, of: Distribution) => {
    for (const each of parameters) each.requiresGrad = true;
    return tidy(() =>
      grad(loss(of.rsample([COUNT], seeded())).div(COUNT), parameters).map((each) => numbers(each)[0]!),
    );
  };

  it.each([0.3, 2, 30])("Beta and Dirichlet of %d: their mean moves as it should", (alpha) => {
    const near = { absolute: 0.02 / alpha, relative: 0 };
    const [one, zero] = [f64(alpha), f64(2 * alpha)];
    const total = 3 * alpha;
    for (const each of [one, zero]) each.requiresGrad = true;
    const found = meanSlopes([one, zero], (x) => x.sum(), new Beta(one, zero));
    expect(found).toAgreeWith([(2 * alpha) / total ** 2, -alpha / total ** 2], near);
    const three = f64(alpha, alpha, alpha);
    three.requiresGrad = true;
    const [first] = meanSlopes([three], (x) => x.select(-1, 0).sum(), new Dirichlet(three));
    expect(first!).toAgreeWith((2 * alpha) / total ** 2, near);
  });

  it("StudentT: its variance falls with the degrees of freedom", () => {
    const df = f64(9);
    df.requiresGrad = true;
    const [found] = meanSlopes([df], (x) => x.square().sum(), new StudentT(df));
    expect(found!).toAgreeWith(-2 / 49, { absolute: 0.01, relative: 0 });
  });

  it("flow through transforms, of which one keeps its sample", () => {
    const loc = parameter([5, -7]);
    const tanh = new TanhTransform({ cacheSize: 1 });
    const policy = new TransformedDistribution(new Normal(loc, 1), [new AffineTransform(0, 2), tanh]);
    const action = policy.rsample([], seeded());
    expect(numbers(action)).toEqual([1, -1]);
    expect(numbers(policy.logProb(action)).every(Number.isFinite)).toBe(true);
    const [slope] = grad(policy.logProb(action).sum(), [loc]);
    expect(numbers(slope!).every(Number.isFinite)).toBe(true);
    // Without it, the inverse of 1 is infinite.
    const plain = new TransformedDistribution(new Normal(loc, 1), [new AffineTransform(0, 2), new TanhTransform()]);
    expect(numbers(plain.logProb(action)).some(Number.isFinite)).toBe(false);
    // Once freed, what was kept counts no more.
    action.dispose();
    expect(numbers(tanh.inverse(tensor([0])))).toEqual([0]);
  });

  it("a transform with a cache gives back what it was given", () => {
    const transforms = [
      new AffineTransform(0, 3, { cacheSize: 1 }),
      new SigmoidTransform({ cacheSize: 1 }),
      new ExpTransform({ cacheSize: 1 }),
    ];
    for (const transform of transforms) {
      const x = tensor([0.1, 40]);
      expect(transform.inverse(transform.forward(x))).toBe(x);
      expect(transform.inv.inverse(x)).toBe(transform.forward(x));
    }
    const x = tensor([1]);
    expect(new AffineTransform(0, 3).inverse(new AffineTransform(0, 3).forward(x))).not.toBe(x);
  });

  it.each([
    ["Gamma", (x: Tensor) => new Gamma(x, 1)],
    ["Dirichlet", (x: Tensor) => new Dirichlet(x)],
  ] as const)("%s has no second gradient by its concentration, as in PyTorch", (_, make) => {
    const x = parameter([1, 2]);
    const [slope] = grad(make(x).rsample().square().sum(), [x], { createGraph: true });
    expectCode("UNSUPPORTED", () => grad(slope!.sum(), [x]));
  });

  it.each([
    new Bernoulli({ probs: 0.5 }),
    new Categorical({ probs: tensor([1, 1]) }),
    new Poisson(1),
    new Independent(new Poisson(tensor([1])), 1),
  ])("%o is discrete, and has none", (of) => {
    expect(of.hasRsample).toBe(false);
    expectCode("UNSUPPORTED", () => of.rsample());
  });
});

describe("samples are drawn again", () => {
  const all = (generator: Generator, rate: Tensor) => {
    const options = { generator };
    return [
      new Gamma(rate, 1),
      new Beta(rate, 2),
      new Poisson(rate),
      new Laplace(0, rate),
      new Bernoulli({ logits: rate }),
      new Categorical({ logits: rate }),
      new TransformedDistribution(new Uniform(0, rate), [new ExpTransform()]),
    ].map((of) => of.sample([2], options));
  };

  it("by replays of a compiled function, as eager code draws them", () => {
    const rate = tensor([0.5, 3]);
    const eager = seeded();
    const expected = [1, 2, 3].map(() => all(eager.generator, rate).map(numbers));
    const { generator } = seeded();
    const compiled = compile((x: Tensor) => all(generator, x), { check: "never" });
    expect([1, 2, 3].map(() => compiled(rate).map(numbers))).toEqual(expected);
  });

  it("in a recomputation, as the first time", () => {
    const x = parameter([0.5, 3]);
    const { generator } = seeded();
    const slope = (remake: boolean) => {
      const f = (rate: Tensor) => {
        const gate = new Bernoulli({ probs: tensor([0.5, 0.5]) }).sample([64], { generator });
        return new Gamma(rate, 1).rsample([64], { generator }).mul(gate).sum();
      };
      generator.manualSeed(3);
      return numbers(grad(remake ? recompute(f, x) : f(x), [x])[0]!);
    };
    expect(slope(true)).toEqual(slope(false));
  });

  it("without a generator by that of all", () => {
    const first = numbers(new Normal(0, 1).sample([3]));
    expect(numbers(new Normal(0, 1).sample([3]))).not.toEqual(first);
  });
});

it("vmap gives the densities of a loop, and checks the values of all", () => {
  const scales = tensor([1, 2, 3]);
  const values = tensor([0.1, 0.5, 0.9]);
  const densities = [
    (scale: Tensor, x: Tensor) => new Normal(0, scale).logProb(x),
    (scale: Tensor, x: Tensor) => new Gamma(scale, 2).logProb(x),
    (scale: Tensor, x: Tensor) => new Beta(scale, 2).logProb(x),
    (scale: Tensor, x: Tensor) => new StudentT(scale).logProb(x),
  ];
  for (const density of densities) {
    const alone = [0, 1, 2].map((i) => density(scales.select(0, i), values.select(0, i)).dataSync()[0]);
    expect(numbers(vmap(density)(scales, values))).toEqual(alone);
    expectCode("BAD_ARGUMENT", () => vmap(density)(scales.mul(-1), values));
  }
});

it.each(["f16", "bf16"] as const)("samples and densities of %s are of this dtype", (dtype) => {
  const one = tensor([0.5, 2]).to(dtype);
  const distributions = [
    new Normal(0, one),
    new Uniform(0, one),
    new Laplace(0, one),
    new Exponential(one),
    new Gamma(one, 1),
    new Beta(one, one),
    new StudentT(one),
    new Poisson(one),
    new Bernoulli({ logits: one }),
    new Dirichlet(one),
    new LogNormal(0, one),
    new HalfNormal(one),
  ];
  for (const of of distributions) {
    const value = of.sample([4], seeded());
    const found = [value.dtype, of.logProb(value).dtype, of.mean.dtype];
    expect([of.name, ...found, numbers(value).every(Number.isFinite)]).toEqual([of.name, dtype, dtype, dtype, true]);
  }
});

it("digamma's slope has the digits that PyTorch's lacks: pi^2 / 6 at 1, pi^2 / 2 at 1/2", () => {
  // The entropy of Gamma(a, 1) has the slope 1 + (1 - a) digamma'(a).
  const shape = f64(2, 0.5);
  shape.requiresGrad = true;
  const [slope] = grad(new Gamma(shape, 1).entropy().sum(), [shape]);
  const expected = [1 - (Math.PI ** 2 / 6 - 1), 1 + Math.PI ** 2 / 4];
  expect(numbers(slope!)).toAgreeWith(expected, { absolute: 0, relative: 1e-13 });
});
