/** The exponential distribution. */
import { zerosLike } from "../create";
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { div, log1p, sub } from "../functions";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { nonNegative, positive } from "./constraints";
import type { DistributionOptions } from "./distribution";
import { Parametric } from "./parametric";
import { uniformNoise } from "./sampling/noise";

/**
 * The exponential distribution: rate exp(-rate x), of x >= 0.
 *
 * @throws OptError BAD_ARGUMENT unless rate > 0; BAD_DTYPE
 * @example
 * new Exponential(tensor([1, 2])).mean; // [1, 0.5]
 */
export class Exponential extends Parametric {
  declare readonly rate: Tensor;

  constructor(rate: Tensor | number, options: DistributionOptions = {}) {
    super("Exponential", { rate: [rate, positive] }, options);
  }

  readonly support = nonNegative;
  override readonly hasRsample = true;
  override get mean(): Tensor {
    return div<Tensor>(1, this.rate);
  }
  override get mode(): Tensor {
    return zerosLike(this.rate);
  }
  override get stddev(): Tensor {
    return this.mean;
  }
  override get variance(): Tensor {
    return this.rate.pow(-2);
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return tidy(() => uniformNoise(shape, this.rate, options, (u) => log1p(u.neg()).neg()).div(this.rate));
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => this.rate.log().sub(this.rate.mul(value)));
  }

  override cdf(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => sub<Tensor>(1, this.rate.mul(value).neg().exp()));
  }

  override icdf(probability: Tensor): Tensor {
    return tidy(() => log1p(probability.neg()).neg().div(this.rate));
  }

  override entropy(): Tensor {
    return tidy(() => sub<Tensor>(1, this.rate.log()));
  }

  expand(batchShape: Shape): Exponential {
    return this.expanded(batchShape, (rate) => new Exponential(rate!, this.options));
  }
}
