/** A batch of distributions as one of more axes. */
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { show } from "../errors/show";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { type Constraint, independentConstraint } from "./constraints";
import {
  checkDistribution,
  DISTRIBUTION_OPTIONS,
  Distribution,
  type DistributionOptions,
  sumRightmost,
} from "./distribution";

/**
 * The last `count` axes of a batch as axes of one value: `logProb` and `entropy` are summed over them.
 *
 * @throws OptError BAD_ARGUMENT unless the batch has so many axes
 * @example
 * const policy = new Independent(new Normal(zeros([8, 3]), 1), 1);
 * policy.logProb(policy.sample()).shape; // [8]
 */
export class Independent extends Distribution {
  readonly support: Constraint;
  override readonly hasRsample: boolean;
  readonly base: Distribution;
  /** How many axes of the base's batch are axes of a value. */
  readonly count: number;

  constructor(base: Distribution, count: number, options: DistributionOptions = {}) {
    const where = "Independent";
    checkOptions(where, options, DISTRIBUTION_OPTIONS);
    checkDistribution(where, base);
    const most = base.batchShape.length;
    const isCount = Number.isInteger(count) && count >= 0 && count <= most;
    check(
      isCount,
      "BAD_ARGUMENT",
      where,
      () => `the count of axes must be an integer from 0 to ${most}, got ${show(count)}.`,
      "It takes axes of the batch.",
    );
    const { batchShape, eventShape } = base;
    super(where, batchShape.slice(0, most - count), [...batchShape.slice(most - count), ...eventShape], options);
    this.base = base;
    this.count = count;
    this.support = independentConstraint(base.support, count);
    this.hasRsample = base.hasRsample;
  }

  override get mean(): Tensor {
    return this.base.mean;
  }
  override get mode(): Tensor {
    return this.base.mode;
  }
  override get variance(): Tensor {
    return this.base.variance;
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return this.base.draw(shape, options);
  }

  logProb(value: Tensor): Tensor {
    return tidy(() => sumRightmost(this.base.logProb(value), this.count));
  }

  override entropy(): Tensor {
    return tidy(() => sumRightmost(this.base.entropy(), this.count));
  }

  expand(batchShape: Shape): Independent {
    const base = this.base.expand([...batchShape, ...this.eventShape.slice(0, this.count)]);
    return new Independent(base, this.count, this.options);
  }
}
