/** The normal distribution. */
import { randn } from "../create";
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { erf, erfinv } from "../functions";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { positive, real } from "./constraints";
import type { DistributionOptions } from "./distribution";
import { Parametric } from "./parametric";

/**
 * The normal distribution: exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi)).
 *
 * @throws OptError BAD_ARGUMENT unless scale > 0; BAD_SHAPE, BAD_DTYPE
 * @example
 * const policy = new Normal(tensor([0, 1]), tensor([1, 0.5]));
 * const action = policy.sample();
 * policy.logProb(action).sum();
 */
export class Normal extends Parametric {
  declare readonly loc: Tensor;
  declare readonly scale: Tensor;

  constructor(loc: Tensor | number, scale: Tensor | number, options: DistributionOptions = {}) {
    super("Normal", { loc: [loc, real], scale: [scale, positive] }, options);
  }

  readonly support = real;
  override readonly hasRsample = true;
  override get mean(): Tensor {
    return this.loc;
  }
  override get mode(): Tensor {
    return this.loc;
  }
  override get stddev(): Tensor {
    return this.scale;
  }
  override get variance(): Tensor {
    return this.scale.square();
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    const { dtype, device } = this.loc;
    return tidy(() => this.loc.add(randn(shape, { dtype, device, ...options }).mul(this.scale)));
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => {
      const square = value.sub(this.loc).square();
      return square
        .div(this.scale.square().mul(-2))
        .sub(this.scale.log())
        .sub(0.5 * Math.log(2 * Math.PI));
    });
  }

  override cdf(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => erf(value.sub(this.loc).div(this.scale).mul(Math.SQRT1_2)).add(1).mul(0.5));
  }

  override icdf(probability: Tensor): Tensor {
    return tidy(() => erfinv(probability.mul(2).sub(1)).mul(this.scale).mul(Math.SQRT2).add(this.loc));
  }

  override entropy(): Tensor {
    return tidy(() => this.scale.log().add(0.5 + 0.5 * Math.log(2 * Math.PI)));
  }

  expand(batchShape: Shape): Normal {
    return this.expanded(batchShape, (loc, scale) => new Normal(loc!, scale!, this.options));
  }
}
