/** What all distributions have: shapes, samples, and checks of parameters and values. */
import { deviceOf } from "../device/registry";
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { check, OptError } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { show } from "../errors/show";
import { expand } from "../ops";
import { checkTensor } from "../ops/check-tensor";
import { lookAtResult } from "../ops/look-at";
import { fill } from "../ops/map";
import { checkGenerator } from "../random/generator";
import { noGrad } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { isFloat } from "../values/dtype";
import { broadcastShapes, checkShape, type Shape, sameShape, showShape } from "../values/shape";
import type { Constraint } from "./constraints";

export interface DistributionOptions {
  /**
   * Checks parameters and values where the device shares the host's memory. Default true, as in PyTorch.
   */
  readonly validateArgs?: boolean;
}

/** What `checkOptions` lets through for every distribution. */
export const DISTRIBUTION_OPTIONS = { validateArgs: "boolean" } as const;

/**
 * A probability distribution, or a batch of them, with the formulas of PyTorch. `batchShape` has the distributions that stand side by side,
 * `eventShape` the axes of one value.
 */
export abstract class Distribution {
  readonly batchShape: Shape;
  readonly eventShape: Shape;
  /** @internal */
  readonly validateArgs: boolean;

  protected constructor(
    /** Of the class, as errors and `klDivergence` call it: bundlers rename classes. */
    readonly name: string,
    batchShape: Shape,
    eventShape: Shape,
    { validateArgs = true }: DistributionOptions,
  ) {
    this.batchShape = batchShape;
    this.eventShape = eventShape;
    this.validateArgs = validateArgs;
  }

  /** The values that it may give: `support.check(x)` says which of x are. */
  abstract readonly support: Constraint;
  /** Whether `rsample` is there. */
  readonly hasRsample: boolean = false;

  get mean(): Tensor {
    throw this.lacks("mean");
  }

  /** The most likely value. */
  get mode(): Tensor {
    throw this.lacks("mode");
  }

  get variance(): Tensor {
    throw this.lacks("variance");
  }

  /** The standard deviation. */
  get stddev(): Tensor {
    return tidy(() => this.variance.sqrt());
  }

  /**
   * Values [...shape, ...batchShape, ...eventShape], without a gradient. A generator gives the same ones on every device.
   *
   * @throws OptError BAD_ARGUMENT, BAD_SHAPE
   */
  sample(shape: Shape = [], options: DrawOptions = {}): Tensor {
    const whole = this.#extendedShape(shape, options);
    return noGrad(() => this.draw(whole, options));
  }

  /** As `sample`, with gradients to the parameters: reparametrized. @throws OptError UNSUPPORTED for discrete distributions */
  rsample(shape: Shape = [], options: DrawOptions = {}): Tensor {
    if (!this.hasRsample) throw this.lacks("rsample");
    return this.draw(this.#extendedShape(shape, options), options);
  }

  /** @internal Samples of this shape, of which the batch and the event are the last axes. */
  abstract draw(shape: Shape, options: DrawOptions): Tensor;

  /** The logarithm of the density, or of the probability, of each value. @throws OptError BAD_ARGUMENT for what is not in `support`; BAD_SHAPE */
  abstract logProb(value: Tensor): Tensor;

  /** The probability of values up to this one. @throws OptError UNSUPPORTED, BAD_ARGUMENT, BAD_SHAPE */
  cdf(_value: Tensor): Tensor {
    throw this.lacks("cdf");
  }

  /** The value that a probability is below: the inverse of `cdf`. @throws OptError UNSUPPORTED */
  icdf(_probability: Tensor): Tensor {
    throw this.lacks("icdf");
  }

  /** The expectation of -logProb. @throws OptError UNSUPPORTED */
  entropy(): Tensor {
    throw this.lacks("entropy");
  }

  /** e^entropy. @throws OptError UNSUPPORTED */
  perplexity(): Tensor {
    return tidy(() => this.entropy().exp());
  }

  /** The same distributions in a larger batch: `batchShape` broadcasts to the new one. @throws OptError BAD_SHAPE */
  abstract expand(batchShape: Shape): Distribution;

  /** @internal The options of another one that is made of this. */
  get options(): DistributionOptions {
    return { validateArgs: this.validateArgs };
  }

  protected lacks(what: string): OptError {
    return new OptError("UNSUPPORTED", this.name, `has no ${what}, as in PyTorch.`);
  }

  /** The shape of samples. @throws OptError BAD_ARGUMENT, BAD_SHAPE */
  #extendedShape(shape: Shape, options: DrawOptions): Shape {
    checkShape(this.name, shape);
    checkOptions(this.name, options, { generator: "object" });
    if (options.generator !== undefined) checkGenerator(this.name, options.generator);
    return [...shape, ...this.batchShape, ...this.eventShape];
  }

  /** @throws OptError BAD_ARGUMENT for a parameter that is not in its set */
  protected checkParameter(name: string, value: Tensor, set: Constraint): void {
    if (this.validateArgs) checkIn(this.name, name, value, set);
  }

  /** @internal @throws OptError BAD_ARGUMENT for values outside of the support; BAD_SHAPE */
  checkValue(value: Tensor): void {
    checkTensor(this.name, value, "the value");
    if (!this.validateArgs) return;
    const { batchShape, eventShape, name, support } = this;
    const whole = [...batchShape, ...eventShape];
    const isEvent = sameShape(value.shape.slice(value.shape.length - eventShape.length), eventShape);
    const fits = value.shape.toReversed().every((extent, i) => {
      const own = whole.at(-1 - i) ?? 1;
      return i >= whole.length || extent === own || extent === 1 || own === 1;
    });
    check(
      isEvent && value.shape.length >= eventShape.length && fits,
      "BAD_SHAPE",
      name,
      () => `values must broadcast with ${showShape(whole)}, got ${showShape(value.shape)}.`,
      `The last ${eventShape.length} axes are one value.`,
    );
    checkIn(name, "each value", value, support);
  }
}

/** Looks at the values where that costs nothing, now and in each replay. */
function checkIn(where: string, what: string, value: Tensor, constraint: Constraint): void {
  if (!value.device.backend.sharesMemory) return;
  tidy(() => {
    const valid = noGrad(() => constraint.check(value));
    lookAtResult(valid, (found, given) => checkFound(where, what, constraint, found, given!), value);
  });
}

function checkFound(
  where: string,
  what: string,
  { name }: Constraint,
  found: ArrayLike<number>,
  given: ArrayLike<number>,
): void {
  const at = Array.prototype.indexOf.call(found, 0);
  check(
    at < 0,
    "BAD_ARGUMENT",
    where,
    () => `${what} must be ${name}, got ${found.length === given.length ? given[at] : "another one"} at ${at}.`,
    "{ validateArgs: false } skips the check.",
  );
}

/** @throws OptError BAD_ARGUMENT for what is no distribution */
export function checkDistribution(where: string, value: unknown): asserts value is Distribution {
  check(
    value instanceof Distribution,
    "BAD_ARGUMENT",
    where,
    () => `needs a distribution, got ${show(value)}.`,
    "For example new Normal(0, 1).",
  );
}

/**
 * Parameters as tensors of one shape: numbers become tensors like the first tensor, or float32.
 *
 * @throws OptError BAD_ARGUMENT for what is neither; BAD_DTYPE for integers; BAD_SHAPE
 */
export function broadcastAll<Values extends readonly (Tensor | number)[]>(
  where: string,
  ...values: Values
): { readonly [K in keyof Values]: Tensor } {
  const tensors = values.filter((value) => value instanceof Tensor);
  for (const value of values) {
    const isParameter = typeof value === "number" || value instanceof Tensor;
    check(
      isParameter,
      "BAD_ARGUMENT",
      where,
      () => `parameters must be tensors or numbers, got ${show(value)}.`,
      "Wrap data with tensor(data).",
    );
  }
  for (const each of tensors) checkFloats(where, each);
  const shape = broadcastShapes(
    where,
    tensors.map((each) => each.shape),
  );
  const [first = fill([], 0, "f32", deviceOf(where, undefined))] = tensors;
  const whole = values.map((value) => {
    if (typeof value === "number") return fill(shape, value, first.dtype, first.device);
    return expandedTo(value, shape);
  });
  return whole as { readonly [K in keyof Values]: Tensor };
}

/** @throws OptError BAD_ARGUMENT, BAD_DTYPE */
export function checkFloats(where: string, value: unknown, name = "a parameter"): asserts value is Tensor {
  checkTensor(where, value, name);
  const { dtype } = value;
  check(isFloat(dtype), "BAD_DTYPE", where, () => `${name} must be floats, got ${dtype}.`, 'Cast with to("f32").');
}

/** x stretched to a shape, or x itself. @throws OptError BAD_SHAPE */
export function expandedTo(x: Tensor, shape: Shape): Tensor {
  return sameShape(x.shape, shape) ? x : expand(x, shape);
}

/** The sum over the last `count` axes. */
export function sumRightmost(x: Tensor, count: number): Tensor {
  return count === 0 ? x : x.sum(Array.from({ length: count }, (_, i) => i - count));
}
