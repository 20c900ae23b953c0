/** The uniform distribution. */
import { rand } from "../create";
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { logicalAnd } from "../functions";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { type Constraint, interval, lessThan, real } from "./constraints";
import type { DistributionOptions } from "./distribution";
import { Parametric } from "./parametric";

/**
 * Numbers from `low` to below `high`, all as likely: the density is 1 / (high - low).
 *
 * @throws OptError BAD_ARGUMENT unless low < high; BAD_SHAPE, BAD_DTYPE
 * @example
 * new Uniform(-1, tensor([1, 3])).sample([5]); // [5, 2]
 */
export class Uniform extends Parametric {
  declare readonly low: Tensor;
  declare readonly high: Tensor;

  constructor(low: Tensor | number, high: Tensor | number, options: DistributionOptions = {}) {
    super("Uniform", { low: [low, (of) => lessThan(of.high!)], high: [high, real] }, options);
    this.support = interval(this.low, this.high);
  }

  readonly support: Constraint;
  override readonly hasRsample = true;
  override get mean(): Tensor {
    return tidy(() => this.high.add(this.low).div(2));
  }
  /** NaN: no value is more likely than others. */
  override get mode(): Tensor {
    return tidy(() => this.high.mul(Number.NaN));
  }
  override get stddev(): Tensor {
    return tidy(() => this.high.sub(this.low).div(Math.sqrt(12)));
  }
  override get variance(): Tensor {
    return tidy(() => this.high.sub(this.low).square().div(12));
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    const { dtype, device } = this.low;
    return tidy(() =>
      rand(shape, { dtype, device, ...options })
        .mul(this.high.sub(this.low))
        .add(this.low),
    );
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => {
      const isInside = logicalAnd(this.low.le(value), this.high.gt(value));
      return isInside.to(this.low.dtype).log().sub(this.high.sub(this.low).log());
    });
  }

  override cdf(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => value.sub(this.low).div(this.high.sub(this.low)).clamp(0, 1));
  }

  override icdf(probability: Tensor): Tensor {
    return tidy(() => probability.mul(this.high.sub(this.low)).add(this.low));
  }

  override entropy(): Tensor {
    return tidy(() => this.high.sub(this.low).log());
  }

  expand(batchShape: Shape): Uniform {
    return this.expanded(batchShape, (low, high) => new Uniform(low!, high!, this.options));
  }
}
