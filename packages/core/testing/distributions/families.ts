/** Random distributions, and what PyTorch calls them. */
import type { CallInput, TorchCall } from "@opt/testkit";
import {
  Bernoulli,
  Beta,
  Categorical,
  Dirichlet,
  type Distribution,
  Exponential,
  Gamma,
  HalfNormal,
  Independent,
  Laplace,
  LogNormal,
  MultivariateNormal,
  Normal,
  OneHotCategorical,
  Poisson,
  StudentT,
  Uniform,
} from "../../src/distributions";
import type { Tensor } from "../../src/tensor/tensor";
import { broadcastShapes } from "../../src/values/shape";
import type { Draw, Shape } from "../draw";

/** The shape of a batch, whether all parameters have it, and how many numbers a vector has. */
export interface Place {
  readonly batch: Shape;
  readonly isWhole: boolean;
  readonly extent: number;
}

/** Not of nothing, which PyTorch can't sum over the last axes. */
export function placeOf(draw: Draw, isWhole = false): Place {
  const batch = draw.shape(2).map((extent) => Math.max(extent, 1));
  return { batch, isWhole, extent: 2 + draw.int(3) };
}

/** A kind of distributions: its parameters, and values of one event. */
export interface Family {
  readonly parameters: (draw: Draw, place: Place) => readonly CallInput[];
  readonly make: (...parameters: Tensor[]) => Distribution;
  /** Of parameters a, b, ...: "Normal(a, b)". */
  readonly torch: string;
  /** By the shape of a batch. */
  readonly value: (draw: Draw, shape: Shape, parameters: readonly CallInput[]) => CallInput;
  readonly shapeOf: (parameters: readonly CallInput[]) => Shape;
  /** Without logProb, which all have. */
  readonly methods: readonly Method[];
}

export type Method = "cdf" | "icdf" | "entropy" | "perplexity" | "mean" | "mode" | "variance" | "stddev";

const MOMENTS = ["mean", "mode", "variance", "stddev"] as const;
const ENTROPIES = ["entropy", "perplexity"] as const;

const real = (draw: Draw, shape: Shape) => draw.numbers(shape, { low: -2, high: 2 });
const positive = (draw: Draw, shape: Shape) => draw.numbers(shape, { low: 0.3, high: 3 });
const share = (draw: Draw, shape: Shape) => draw.numbers(shape, { low: 0.07, high: 0.93 });

/** Vectors whose sum is 1. */
function shares(draw: Draw, shape: Shape): CallInput {
  const given = draw.numbers(shape, { low: 0.1, high: 1 });
  const extent = shape.at(-1)!;
  const all = Array.from(given.values);
  const values = all.map((value, i) => {
    const row = i - (i % extent);
    return value / all.slice(row, row + extent).reduce((a, b) => a + b, 0);
  });
  // Rounded to float32, sums stay near enough to 1, which PyTorch checks.
  return { ...given, values, requiresGrad: false };
}

const batchOf = (parameters: readonly CallInput[]) =>
  broadcastShapes(
    "family",
    parameters.map(({ shape }) => shape),
  );
const batchOfRows = ([first]: readonly CallInput[]) => first!.shape.slice(0, -1);

/** A shape that broadcasts to a batch. */
function partOf(draw: Draw, { batch, isWhole }: Place): Shape {
  if (isWhole) return batch;
  const part = draw.int(3) === 0 ? batch.slice(draw.int(batch.length + 1)) : batch;
  return part.map((extent) => (draw.int(4) === 0 ? 1 : extent));
}

type Drawing = (draw: Draw, shape: Shape) => CallInput;

const scalarFamily = (
  torch: string,
  make: Family["make"],
  drawings: readonly Drawing[],
  value: Drawing,
  methods: Family["methods"],
): Family => ({
  torch,
  make,
  methods,
  value,
  parameters: (draw, place) => drawings.map((drawing) => drawing(draw, partOf(draw, place))),
  shapeOf: batchOf,
});

/** A matrix with a dominant diagonal: L for `triangle`, else L plus its transpose, which is positive definite. */
function matrix(draw: Draw, shape: Shape, triangle: boolean): CallInput {
  const given = draw.numbers([...shape, shape.at(-1)!], { low: -0.5, high: 0.5 });
  const n = shape.at(-1)!;
  const entries = Array.from(given.values, (value, at) => {
    const [i, j] = [Math.floor(at / n) % n, at % n];
    if (i === j) return n + Math.abs(value);
    if (triangle) return i < j ? 0 : value;
    const mirrored = at - i * n - j + j * n + i;
    return i < j ? given.values[mirrored]! : value;
  });
  return { ...given, values: entries };
}

const vectorFamily = (
  name: "covariance_matrix" | "precision_matrix" | "scale_tril",
  option: "covarianceMatrix" | "precisionMatrix" | "scaleTril",
): Family => ({
  torch: `MultivariateNormal(a, ${name}=${name === "scale_tril" ? "b" : "(b + b.mT) / 2"})`,
  make: (loc, given) =>
    new MultivariateNormal(loc!, { [option]: name === "scale_tril" ? given! : given!.add(given!.transpose()).div(2) }),
  parameters: (draw, { batch, extent }) => {
    const shape = [...batch, extent];
    const own = draw.flip() ? shape : shape.slice(-1);
    return [real(draw, shape), matrix(draw, own, name === "scale_tril")];
  },
  shapeOf: ([loc]) => loc!.shape.slice(0, -1),
  value: (draw, shape, [loc]) => real(draw, [...shape, loc!.shape.at(-1)!]),
  methods: ["entropy", "mean", "mode", "variance", "stddev"],
});

const categories = (
  torch: string,
  make: Family["make"],
  drawing: Drawing,
  methods: Family["methods"],
  isOneHot = false,
): Family => ({
  torch,
  make,
  methods,
  parameters: (draw, { batch, extent }) => [drawing(draw, [...batch, extent])],
  shapeOf: batchOfRows,
  value: (draw, shape, [given]) => {
    const extent = given!.shape.at(-1)!;
    const indices = draw.whole(shape, extent);
    if (!isOneHot) return indices;
    const rows = Array.from(indices.values, (index) => Array.from({ length: extent }, (_, i) => Number(i === index)));
    return { values: rows.flat(), shape: [...shape, extent], dtype: draw.dtype };
  },
});

const coins: Drawing = (draw, shape) => draw.whole(shape, 2, draw.dtype);
const counts: Drawing = (draw, shape) => draw.whole(shape, 9, draw.dtype);
const weights: Drawing = (draw, shape) => draw.numbers(shape, { low: 0.1, high: 2 });

/** By what tests call them. */
export const FAMILIES: Readonly<Record<string, Family>> = {
  Normal: scalarFamily("Normal(a, b)", (a, b) => new Normal(a!, b!), [real, positive], real, [
    ...MOMENTS,
    ...ENTROPIES,
    "cdf",
    "icdf",
  ]),
  "Normal of a number": scalarFamily("Normal(0.5, a)", (a) => new Normal(0.5, a!), [positive], real, ["cdf", "mean"]),
  Uniform: scalarFamily(
    "Uniform(a, b)",
    (a, b) => new Uniform(a!, b!),
    [
      (draw, shape) => draw.numbers(shape, { low: -3, high: -1 }),
      (draw, shape) => draw.numbers(shape, { low: 1, high: 3 }),
    ],
    (draw, shape) => draw.numbers(shape, { low: -1, high: 1 }),
    [...MOMENTS, ...ENTROPIES, "cdf", "icdf"],
  ),
  Laplace: scalarFamily("Laplace(a, b)", (a, b) => new Laplace(a!, b!), [real, positive], real, [
    ...MOMENTS,
    ...ENTROPIES,
    "cdf",
    "icdf",
  ]),
  Exponential: scalarFamily("Exponential(a)", (a) => new Exponential(a!), [positive], positive, [
    ...MOMENTS,
    ...ENTROPIES,
    "cdf",
    "icdf",
  ]),
  LogNormal: scalarFamily("LogNormal(a, b)", (a, b) => new LogNormal(a!, b!), [real, positive], positive, [
    ...MOMENTS,
    ...ENTROPIES,
    "cdf",
    "icdf",
  ]),
  HalfNormal: scalarFamily("HalfNormal(a)", (a) => new HalfNormal(a!), [positive], positive, [
    ...MOMENTS,
    ...ENTROPIES,
    "cdf",
    "icdf",
  ]),
  StudentT: scalarFamily(
    "StudentT(a, b, c)",
    (a, b, c) => new StudentT(a!, b!, c!),
    [(draw, shape) => draw.numbers(shape, { low: 0.6, high: 6 }), real, positive],
    real,
    [...MOMENTS, ...ENTROPIES],
  ),
  Gamma: scalarFamily("Gamma(a, b)", (a, b) => new Gamma(a!, b!), [positive, positive], positive, [
    ...MOMENTS,
    ...ENTROPIES,
  ]),
  Beta: scalarFamily("Beta(a, b)", (a, b) => new Beta(a!, b!), [positive, positive], share, [...MOMENTS, ...ENTROPIES]),
  "Bernoulli by probs": scalarFamily("Bernoulli(probs=a)", (a) => new Bernoulli({ probs: a! }), [share], coins, [
    ...MOMENTS,
    ...ENTROPIES,
  ]),
  "Bernoulli by logits": scalarFamily("Bernoulli(logits=a)", (a) => new Bernoulli({ logits: a! }), [real], coins, [
    ...MOMENTS,
    ...ENTROPIES,
  ]),
  Poisson: scalarFamily("Poisson(a)", (a) => new Poisson(a!), [positive], counts, MOMENTS),
  Dirichlet: {
    torch: "Dirichlet(a)",
    make: (a) => new Dirichlet(a!),
    parameters: (draw, { batch, extent }) => [positive(draw, [...batch, extent])],
    shapeOf: batchOfRows,
    value: (draw, shape, [given]) => shares(draw, [...shape, given!.shape.at(-1)!]),
    methods: [...MOMENTS, ...ENTROPIES],
  },
  "Categorical by probs": categories("Categorical(probs=a)", (a) => new Categorical({ probs: a! }), weights, [
    ...MOMENTS,
    ...ENTROPIES,
  ]),
  "Categorical by logits": categories("Categorical(logits=a)", (a) => new Categorical({ logits: a! }), real, [
    ...MOMENTS,
    ...ENTROPIES,
  ]),
  OneHotCategorical: categories(
    "OneHotCategorical(logits=a)",
    (a) => new OneHotCategorical({ logits: a! }),
    real,
    [...MOMENTS, ...ENTROPIES],
    true,
  ),
  "MultivariateNormal by covariance": vectorFamily("covariance_matrix", "covarianceMatrix"),
  "MultivariateNormal by precision": vectorFamily("precision_matrix", "precisionMatrix"),
  "MultivariateNormal by its triangle": vectorFamily("scale_tril", "scaleTril"),
  Independent: {
    torch: "Independent(torch.distributions.Normal(a, b), 1)",
    make: (a, b) => new Independent(new Normal(a!, b!), 1),
    parameters: (draw, { batch, extent }) => {
      const shape = [...batch, extent];
      return [real(draw, shape), positive(draw, shape)];
    },
    shapeOf: batchOfRows,
    value: (draw, shape, [loc]) => real(draw, [...shape, loc!.shape.at(-1)!]),
    methods: [...MOMENTS, ...ENTROPIES],
  },
};

/** At wholes and 1/2, where formulas have their edges, and no gradients. */
const rounded = (parameter: CallInput): CallInput => ({
  ...parameter,
  values: Array.from(parameter.values, (value) => Math.round(value) || 0.5),
  requiresGrad: false,
});

const OUTSIDE = [-2, -1, -0.5, 0, 0.25, 1, 1.5, 3, 40];

/** Unchecked, at numbers of which some are not in the support. */
export function callOutside(name: string, draw: Draw, method: "logProb" | "cdf"): Omit<TorchCall, "name"> {
  const { parameters, make, torch } = FAMILIES[name]!;
  const given = parameters(draw, { batch: [OUTSIDE.length], isWhole: true, extent: 1 });
  const unchecked = (of: Distribution): Distribution => {
    const { base } = of as { base?: Distribution };
    if (base) unchecked(base);
    return Object.assign(of, { validateArgs: false });
  };
  const values = { values: OUTSIDE, shape: [OUTSIDE.length], dtype: draw.dtype };
  const last = "abcd"[given.length]!;
  return {
    inputs: [...given, values].map((input) => ({ ...input, requiresGrad: false })),
    code: `torch.distributions.${torch.replace(/\)$/, ", validate_args=False)")}.${method === "cdf" ? "cdf" : "log_prob"}(${last})`,
    run: (...inputs) => unchecked(make(...inputs.slice(0, given.length)))[method](inputs.at(-1)!),
  };
}

/** What is compared of a distribution. */
export function callOf(name: string, draw: Draw, given?: Method | "logProb", atEdges = false): Omit<TorchCall, "name"> {
  const family = FAMILIES[name]!;
  const method = given ?? draw.random.pick([...family.methods, "logProb", "logProb"] as const);
  const drawn = family.parameters(draw, atEdges ? { batch: [9], isWhole: true, extent: 3 } : placeOf(draw));
  const parameters = atEdges ? drawn.map(rounded) : drawn;
  const torch = `torch.distributions.${family.torch}`;
  const ours = (inputs: Tensor[]) => family.make(...inputs.slice(0, parameters.length));
  const last = "abcd"[parameters.length]!;
  const shape = family.shapeOf(parameters);
  const sampled = draw.flip() ? [2, ...shape] : shape;
  switch (method) {
    case "logProb":
      return {
        inputs: [...parameters, family.value(draw, sampled, parameters)],
        code: `${torch}.log_prob(${last})`,
        run: (...inputs) => ours(inputs).logProb(inputs.at(-1)!),
      };
    case "cdf":
    case "icdf":
      return {
        inputs: [...parameters, method === "cdf" ? family.value(draw, sampled, parameters) : share(draw, sampled)],
        code: `${torch}.${method}(${last})`,
        run: (...inputs) => ours(inputs)[method](inputs.at(-1)!),
      };
    case "entropy":
    case "perplexity":
      return { inputs: parameters, code: `${torch}.${method}()`, run: (...inputs) => ours(inputs)[method]() };
    default:
      return {
        inputs: parameters,
        code: `${torch}.${method}.clone()`,
        run: (...inputs) => ours(inputs)[method].clone(),
      };
  }
}
