/** Initialisers: they overwrite a tensor with numbers from a seeded generator and return it, as `torch.nn.init` does. */
import { defaultGenerator, type Generator, OptError, type Tensor } from "@opt/core";
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
  /** Slope below zero, for "leakyRelu". */
  readonly negativeSlope?: number;
}

export interface XavierOptions extends InitializerOptions {
  readonly gain?: number;
}

function fillWith(target: Tensor, next: () => number): Tensor {
  const values = new Float64Array(target.size);
  for (let i = 0; i < values.length; i++) values[i] = next();
  target.set(values);
  return target;
}

/** Standard normal numbers, one at a time, each pair that the generator makes used whole. */
function normals(generator: Generator): () => number {
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

/** Every element = value. */
export function constant(target: Tensor, value: number): Tensor {
  return fillWith(target, () => value);
}

export function zeros(target: Tensor): Tensor {
  return constant(target, 0);
}

export function ones(target: Tensor): Tensor {
  return constant(target, 1);
}

/** U[low, high). @throws OptError BAD_ARGUMENT if low > high */
export function uniform(
  target: Tensor,
  low = 0,
  high = 1,
  { generator = defaultGenerator }: InitializerOptions = {},
): Tensor {
  if (!(low <= high))
    throw new OptError("BAD_ARGUMENT", "uniform", `low must be <= high, got ${low} and ${high}.`, "Swap them.");
  return fillWith(target, () => low + (high - low) * generator.nextFloat());
}

function checkDeviation(where: string, deviation: number): void {
  if (!(deviation >= 0))
    throw new OptError("BAD_ARGUMENT", where, `the standard deviation must be >= 0, got ${deviation}.`, "Use 0.02.");
}

/** N(mean, deviation^2). @throws OptError BAD_ARGUMENT if deviation < 0 */
export function normal(
  target: Tensor,
  mean = 0,
  deviation = 1,
  { generator = defaultGenerator }: InitializerOptions = {},
): Tensor {
  checkDeviation("normal", deviation);
  const next = normals(generator);
  return fillWith(target, () => mean + deviation * next());
}

/** N(mean, deviation^2) given that it lies in [low, high]: numbers outside are drawn again. @throws OptError BAD_ARGUMENT */
export function truncatedNormal(
  target: Tensor,
  mean = 0,
  deviation = 1,
  low = -2,
  high = 2,
  { generator = defaultGenerator }: InitializerOptions = {},
): Tensor {
  checkDeviation("truncatedNormal", deviation);
  // Further out than two deviations hardly a draw is kept.
  if (!(low < high && low <= mean + 2 * deviation && high >= mean - 2 * deviation)) {
    throw new OptError(
      "BAD_ARGUMENT",
      "truncatedNormal",
      `[low, high] must come within two deviations of the mean ${mean}, got [${low}, ${high}].`,
      "Widen it.",
    );
  }
  const next = normals(generator);
  return fillWith(target, () => {
    for (;;) {
      const value = mean + deviation * next();
      if (value >= low && value <= high) return value;
    }
  });
}

/** U[-b, b], b = gain sqrt(3 / fan) (He et al. 2015). @throws OptError BAD_SHAPE below two axes */
export function kaimingUniform(target: Tensor, options: KaimingOptions = {}): Tensor {
  const bound = Math.sqrt(3) * kaimingDeviation("kaimingUniform", target, options);
  return uniform(target, -bound, bound, options);
}

/** N(0, gain^2 / fan) (He et al. 2015). @throws OptError BAD_SHAPE below two axes */
export function kaimingNormal(target: Tensor, options: KaimingOptions = {}): Tensor {
  return normal(target, 0, kaimingDeviation("kaimingNormal", target, options), options);
}

function kaimingDeviation(
  where: string,
  target: Tensor,
  { fan = "in", nonlinearity = "relu", negativeSlope = 0 }: KaimingOptions,
): number {
  return gainOf(nonlinearity, negativeSlope) / Math.sqrt(fanOf(where, target.shape)[fan]);
}

/** U[-b, b], b = gain sqrt(6 / (fanIn + fanOut)) (Glorot & Bengio 2010). @throws OptError BAD_SHAPE below two axes */
export function xavierUniform(target: Tensor, options: XavierOptions = {}): Tensor {
  const bound = Math.sqrt(3) * xavierDeviation("xavierUniform", target, options);
  return uniform(target, -bound, bound, options);
}

/** N(0, 2 gain^2 / (fanIn + fanOut)) (Glorot & Bengio 2010). @throws OptError BAD_SHAPE below two axes */
export function xavierNormal(target: Tensor, options: XavierOptions = {}): Tensor {
  return normal(target, 0, xavierDeviation("xavierNormal", target, options), options);
}

function xavierDeviation(where: string, target: Tensor, { gain = 1 }: XavierOptions): number {
  const fan = fanOf(where, target.shape);
  return gain * Math.sqrt(2 / (fan.in + fan.out));
}
