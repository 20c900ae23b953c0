/** Initialisers: they overwrite a tensor with numbers from a seeded generator and return it, as `torch.nn.init` does. */
import {
  check,
  checkGenerator,
  checkOptions,
  checkTensor,
  defaultGenerator,
  type Generator,
  show,
  type Tensor,
} from "@opt/core";
import { type Fan, fanOf } from "./fan";
import { gainOf, type Nonlinearity } from "./gain";

export interface InitializerOptions {
  /** By default the generator that `manualSeed` seeds. */
  readonly generator?: Generator;
}

export interface KaimingOptions extends InitializerOptions {
  /** "in" keeps the variance of activations, "out" that of gradients. */
  readonly fan?: Fan;
  readonly nonlinearity?: Nonlinearity;
  /** Slope below zero, of "leakyRelu", which must be named with it. PyTorch's `kaiming_uniform_(w, a=a)` is `{ nonlinearity: "leakyRelu", negativeSlope: a }`. */
  readonly negativeSlope?: number;
}

export interface XavierOptions extends InitializerOptions {
  readonly gain?: number;
}

export const GENERATOR = { generator: "object" } as const;

export function fillWith(target: Tensor, next: () => number): Tensor {
  const values = new Float64Array(target.size);
  for (let i = 0; i < values.length; i++) values[i] = next();
  target.set(values);
  return target;
}

/** Checks the tensor, numbers and options before anything is drawn. */
export function checkArguments(
  where: string,
  target: Tensor,
  numbers: Readonly<Record<string, number>>,
  options: InitializerOptions,
): Generator {
  checkTensor(where, target, "target");
  for (const [name, value] of Object.entries(numbers)) {
    const fits = Number.isFinite(value);
    check(fits, "BAD_ARGUMENT", where, () => `${name} must be a finite number, got ${show(value)}.`, "For example 0.");
  }
  checkOptions(where, options, GENERATOR);
  const { generator = defaultGenerator } = options;
  checkGenerator(where, generator);
  return generator;
}

/** Standard normal numbers, one at a time, each pair that the generator makes used whole. */
export function normals(generator: Generator): () => number {
  let spare: number | undefined;
  return () => {
    if (spare !== undefined) {
      const value = spare;
      spare = undefined;
      return value;
    }
    const [first, second] = generator.nextNormals();
    spare = second;
    return first;
  };
}

/** Every element = value; NaN too. */
export function constant(target: Tensor, value: number): Tensor {
  checkTensor("constant", target, "target");
  check(typeof value === "number", "BAD_ARGUMENT", "constant", () => `value must be a number, got ${show(value)}.`);
  return fillWith(target, () => value);
}

/** Every element = 0. */
export function zeros(target: Tensor): Tensor {
  return constant(target, 0);
}

/** Every element = 1. */
export function ones(target: Tensor): Tensor {
  return constant(target, 1);
}

/** U[low, high). @throws OptError BAD_ARGUMENT if low > high */
export function uniform(target: Tensor, low = 0, high = 1, options: InitializerOptions = {}): Tensor {
  const generator = checkArguments("uniform", target, { low, high }, options);
  check(low <= high, "BAD_ARGUMENT", "uniform", () => `low must be <= high, got ${low} and ${high}.`, "Swap them.");
  return fillWith(target, () => low + (high - low) * generator.nextFloat(target.dtype));
}

export function checkDeviation(where: string, deviation: number): void {
  check(
    deviation >= 0,
    "BAD_ARGUMENT",
    where,
    () => `the standard deviation must be >= 0, got ${deviation}.`,
    "Use 0.02.",
  );
}

/** N(mean, deviation^2). @throws OptError BAD_ARGUMENT if deviation < 0 */
export function normal(target: Tensor, mean = 0, deviation = 1, options: InitializerOptions = {}): Tensor {
  const next = normals(checkArguments("normal", target, { mean, deviation }, options));
  checkDeviation("normal", deviation);
  return fillWith(target, () => mean + deviation * next());
}

export interface TruncNormalOptions extends InitializerOptions {
  /** Default 0. */
  readonly mean?: number;
  /** The standard deviation before numbers are cut off. Default 1. */
  readonly std?: number;
  /** The least number. Default -2. */
  readonly a?: number;
  /** The largest number. Default 2. */
  readonly b?: number;
}

/**
 * N(mean, std^2) within [a, b]: numbers outside are drawn again.
 *
 * @throws OptError BAD_ARGUMENT, also for bounds more than two deviations from the mean
 * @example
 * const weight = truncNormal(parameter([[0, 0], [0, 0]]), { std: 0.02 });
 */
export function truncNormal(target: Tensor, options: TruncNormalOptions = {}): Tensor {
  const where = "truncNormal";
  checkOptions(where, options, { ...GENERATOR, mean: "number", std: "number", a: "number", b: "number" });
  const { mean = 0, std: deviation = 1, a: low = -2, b: high = 2, ...drawn } = options;
  const generator = checkArguments(where, target, { mean, std: deviation, a: low, b: high }, drawn);
  checkDeviation(where, deviation);
  // Further out than two deviations hardly a draw is kept.
  check(
    low < high && low <= mean + 2 * deviation && high >= mean - 2 * deviation,
    "BAD_ARGUMENT",
    where,
    () => `[a, b] must come within two deviations of the mean ${mean}, got [${low}, ${high}].`,
    "Widen it.",
  );
  const accepted = high - low < deviation ? fromNarrow(generator, mean, deviation, low, high) : undefined;
  const next = normals(generator);
  return fillWith(target, () => {
    for (;;) {
      const value = accepted === undefined ? mean + deviation * next() : accepted();
      if (value >= low && value <= high) return value;
    }
  });
}

/** Of a normal that is much wider than [low, high] hardly a draw would be kept: uniform ones are, each by its density. */
function fromNarrow(generator: Generator, mean: number, deviation: number, low: number, high: number): () => number {
  const density = (x: number) => Math.exp(-(((x - mean) / deviation) ** 2) / 2);
  const densest = density(Math.min(Math.max(mean, low), high));
  return () => {
    const value = low + (high - low) * generator.nextFloat();
    return generator.nextFloat() * densest <= density(value) ? value : Number.NaN;
  };
}

const KAIMING = { ...GENERATOR, fan: "string", nonlinearity: "string", negativeSlope: "number" } as const;
const XAVIER = { ...GENERATOR, gain: "number" } as const;

/** U[-b, b], b = gain sqrt(3 / fan) (He et al. 2015). @throws OptError BAD_SHAPE below two axes */
export function kaimingUniform(target: Tensor, options: KaimingOptions = {}): Tensor {
  const bound = Math.sqrt(3) * kaimingDeviation("kaimingUniform", target, options);
  return uniform(target, -bound, bound, { generator: options.generator });
}

/** N(0, gain^2 / fan) (He et al. 2015). @throws OptError BAD_SHAPE below two axes */
export function kaimingNormal(target: Tensor, options: KaimingOptions = {}): Tensor {
  return normal(target, 0, kaimingDeviation("kaimingNormal", target, options), { generator: options.generator });
}

function kaimingDeviation(where: string, target: Tensor, options: KaimingOptions): number {
  checkTensor(where, target, "target");
  checkOptions(where, options, KAIMING);
  const { fan = "in", nonlinearity = "relu", negativeSlope = 0 } = options;
  check(
    fan === "in" || fan === "out",
    "BAD_ARGUMENT",
    where,
    () => `fan must be "in" or "out", got ${show(fan)}.`,
    'Use "in".',
  );
  const isNamed = negativeSlope === 0 || options.nonlinearity !== undefined;
  check(
    isNamed,
    "BAD_ARGUMENT",
    where,
    () => `negativeSlope is that of "leakyRelu", got ${show(negativeSlope)} for the default, "relu".`,
    'Pass nonlinearity: "leakyRelu", which is PyTorch\'s default.',
  );
  return gainOf(nonlinearity, negativeSlope) / Math.sqrt(fanOf(where, target.shape)[fan]);
}

/** U[-b, b], b = gain sqrt(6 / (fanIn + fanOut)) (Glorot & Bengio 2010). @throws OptError BAD_SHAPE below two axes */
export function xavierUniform(target: Tensor, options: XavierOptions = {}): Tensor {
  const bound = Math.sqrt(3) * xavierDeviation("xavierUniform", target, options);
  return uniform(target, -bound, bound, { generator: options.generator });
}

/** N(0, 2 gain^2 / (fanIn + fanOut)) (Glorot & Bengio 2010). @throws OptError BAD_SHAPE below two axes */
export function xavierNormal(target: Tensor, options: XavierOptions = {}): Tensor {
  return normal(target, 0, xavierDeviation("xavierNormal", target, options), { generator: options.generator });
}

function xavierDeviation(where: string, target: Tensor, options: XavierOptions): number {
  checkTensor(where, target, "target");
  checkOptions(where, options, XAVIER);
  const fan = fanOf(where, target.shape);
  return (options.gain ?? 1) * Math.sqrt(2 / (fan.in + fan.out));
}
