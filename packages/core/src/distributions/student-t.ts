/** Student's t distribution. */
import { randn } from "../create";
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { digamma, lgamma, log1p, where } from "../functions";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { positive, real } from "./constraints";
import type { DistributionOptions } from "./distribution";
import { Gamma } from "./gamma";
import { Parametric } from "./parametric";

/**
 * Student's t distribution with `df` degrees of freedom: the density is proportional to (1 + y^2 / df)^(-(df + 1) / 2), with
 * y = (x - loc) / scale. Samples are PyTorch's in distribution, not in bits; their gradients are PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT unless df > 0 and scale > 0; BAD_SHAPE, BAD_DTYPE
 * @example
 * new StudentT(tensor([3, 5]), 0, 2).variance; // [12, 6.6667]
 */
export class StudentT extends Parametric {
  declare readonly df: Tensor;
  declare readonly loc: Tensor;
  declare readonly scale: Tensor;

  constructor(
    df: Tensor | number,
    loc: Tensor | number = 0,
    scale: Tensor | number = 1,
    options: DistributionOptions = {},
  ) {
    super("StudentT", { df: [df, positive], loc: [loc, real], scale: [scale, positive] }, options);
  }

  readonly support = real;
  override readonly hasRsample = true;
  /** NaN where df <= 1. */
  override get mean(): Tensor {
    return tidy(() => where(this.df.le(1), Number.NaN, this.loc));
  }
  override get mode(): Tensor {
    return this.loc;
  }
  /** Infinite where df <= 2, NaN where df <= 1. */
  override get variance(): Tensor {
    return tidy(() => {
      const hasVariance = this.df.gt(2);
      // Of others no gradient comes.
      const df = where(hasVariance, this.df, 3);
      const variance = this.scale.square().mul(df).div(df.sub(2));
      const other = where(this.df.le(1), Number.NaN, this.df.mul(0).add(Number.POSITIVE_INFINITY));
      return where(hasVariance, variance, other);
    });
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    const { dtype, device } = this.df;
    return tidy(() => {
      const normal = randn(shape, { dtype, device, ...options });
      const chiSquare = new Gamma(this.df.mul(0.5), 0.5, { validateArgs: false }).draw(shape, options);
      return this.loc.add(this.scale.mul(normal.mul(chiSquare.div(this.df).rsqrt())));
    });
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => {
      const { df, loc, scale } = this;
      const y = value.sub(loc).div(scale);
      const logs = scale
        .log()
        .add(df.log().mul(0.5))
        .add(0.5 * Math.log(Math.PI));
      const integral = logs.add(this.#logRatio());
      return df
        .add(1)
        .mul(-0.5)
        .mul(log1p(y.square().div(df)))
        .sub(integral);
    });
  }

  override entropy(): Tensor {
    return tidy(() => {
      const { df, scale } = this;
      const half = df.add(1).mul(0.5);
      const slope = half.mul(digamma(half).sub(digamma(df.mul(0.5))));
      const logBeta = this.#logRatio().add(0.5 * Math.log(Math.PI));
      return scale.log().add(slope).add(df.log().mul(0.5)).add(logBeta);
    });
  }

  expand(batchShape: Shape): StudentT {
    return this.expanded(batchShape, (df, loc, scale) => new StudentT(df!, loc!, scale!, this.options));
  }

  /** log(gamma(df / 2) / gamma((df + 1) / 2)) */
  #logRatio(): Tensor {
    return lgamma(this.df.mul(0.5)).sub(lgamma(this.df.add(1).mul(0.5)));
  }
}
