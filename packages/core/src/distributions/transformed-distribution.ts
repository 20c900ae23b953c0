/** Distributions of functions of samples. */
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { show } from "../errors/show";
import type { Tensor } from "../tensor/tensor";
import { type Shape, sameShape, showShape } from "../values/shape";
import { type Constraint, independentConstraint } from "./constraints";
import {
  checkDistribution,
  DISTRIBUTION_OPTIONS,
  Distribution,
  type DistributionOptions,
  sumRightmost,
} from "./distribution";
import { Independent } from "./independent";
import { ComposeTransform, product, Transform } from "./transforms/transform";

/**
 * The distribution of t(x) with x of a base distribution: log p(y) = log p(x) - log |dy / dx|.
 *
 * @throws OptError BAD_ARGUMENT, BAD_SHAPE
 * @example
 * const logistic = new TransformedDistribution(new Uniform(0, 1), [new SigmoidTransform().inv, new AffineTransform(1, 2)]);
 * logistic.logProb(logistic.sample([3]));
 */
export class TransformedDistribution extends Distribution {
  readonly support: Constraint;
  override readonly hasRsample: boolean;
  /** With the axes that the transforms take together. */
  readonly base: Distribution;
  readonly transforms: readonly Transform[];

  constructor(base: Distribution, transforms: Transform | readonly Transform[], options: DistributionOptions = {}) {
    const name = "TransformedDistribution";
    checkOptions(name, options, DISTRIBUTION_OPTIONS);
    checkDistribution(name, base);
    const list = [transforms].flat() as readonly Transform[];
    const areTransforms = list.every((each) => each instanceof Transform);
    check(
      areTransforms,
      "BAD_ARGUMENT",
      name,
      () => `transforms must be a list of Transform, got ${show(transforms)}.`,
    );
    const { domain, codomain, ...whole } = placesOf(name, base, list);
    const own = base.eventShape.length;
    const eventDim = Math.max(codomain, own + codomain - domain);
    const cut = whole.shape.length - eventDim;
    super(name, whole.shape.slice(0, cut), whole.shape.slice(cut), options);
    this.transforms = list;
    this.base = domain > own ? new Independent(whole.base, domain - own) : whole.base;
    this.hasRsample = base.hasRsample;
    const set = list.at(-1)?.codomain ?? this.base.support;
    this.support = independentConstraint(set, Math.max(eventDim - set.eventDim, 0));
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return this.#forward(this.base.draw(this.#inverseShape(shape), options));
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => {
      let eventDim = this.eventShape.length;
      let [y, sum] = [value, undefined as Tensor | undefined];
      for (const transform of this.transforms.toReversed()) {
        const x = transform.inverse(y);
        eventDim += transform.domain.eventDim - transform.codomain.eventDim;
        const stretch = transform.logAbsDetJacobian(x, y);
        const term = sumRightmost(stretch, eventDim - transform.domain.eventDim);
        sum = sum === undefined ? term : sum.add(term);
        y = x;
      }
      const ofBase = sumRightmost(this.base.logProb(y), eventDim - this.base.eventShape.length);
      return sum === undefined ? ofBase : ofBase.sub(sum);
    });
  }

  override cdf(value: Tensor): Tensor {
    return tidy(() => {
      const inverted = this.transforms.reduceRight((y, transform) => transform.inverse(y), value);
      return this.#rising(this.base.cdf(inverted));
    });
  }

  override icdf(probability: Tensor): Tensor {
    return tidy(() => this.#forward(this.base.icdf(this.#rising(probability))));
  }

  expand(batchShape: Shape): Distribution {
    const shape = this.#inverseShape([...batchShape, ...this.eventShape]);
    const base = this.base.expand(shape.slice(0, shape.length - this.base.eventShape.length));
    return new TransformedDistribution(base, this.transforms, this.options);
  }

  #inverseShape(shape: Shape): Shape {
    return this.transforms.reduceRight((given, transform) => transform.inverseShape(given), shape);
  }

  /** Not in a tidy: a transform may keep what it computed. */
  #forward(x: Tensor): Tensor {
    return this.transforms.reduce((value, transform) => transform.forward(value), x);
  }

  /** p, or 1 - p where the transforms fall. */
  #rising(p: Tensor): Tensor {
    const sign = this.transforms.reduce<number | Tensor>((sum, transform) => product(sum, transform.sign), 1);
    return sign === 1 ? p : p.sub(0.5).mul(sign).add(0.5);
  }
}

/** The base stretched to what the transforms make of it, and how many axes they take and give together. */
function placesOf(where: string, base: Distribution, list: readonly Transform[]) {
  const transform = new ComposeTransform(list);
  const given = [...base.batchShape, ...base.eventShape];
  const domain = transform.domain.eventDim;
  check(
    given.length >= domain,
    "BAD_SHAPE",
    where,
    () => `the base must have ${domain} axes, got ${showShape(given)}.`,
    "The transforms take so many axes together.",
  );
  const shape = transform.forwardShape(given);
  const stretched = transform.inverseShape(shape);
  const isWhole = sameShape(given, stretched);
  const batch = stretched.slice(0, stretched.length - base.eventShape.length);
  return { shape, domain, codomain: transform.codomain.eventDim, base: isWhole ? base : base.expand(batch) };
}
