/** The distribution of absolute values of normal numbers. */
import { zerosLike } from "../create";
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { checkOptions } from "../errors/options";
import { where } from "../functions";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { nonNegative, positive } from "./constraints";
import { DISTRIBUTION_OPTIONS, Distribution, type DistributionOptions, expandedTo } from "./distribution";
import { Normal } from "./normal";

/**
 * The distribution of |x|, with x of `Normal(0, scale)`.
 *
 * @throws OptError BAD_ARGUMENT unless scale > 0; BAD_DTYPE
 * @example
 * new HalfNormal(tensor([1, 2])).mean; // [0.7979, 1.5958]
 */
export class HalfNormal extends Distribution {
  /** @internal Of both signs. */
  readonly base: Normal;

  constructor(scale: Tensor | number, options: DistributionOptions = {}) {
    checkOptions("HalfNormal", options, DISTRIBUTION_OPTIONS);
    const base = new Normal(0, scale, { validateArgs: false });
    super("HalfNormal", base.batchShape, [], options);
    this.base = base;
    this.checkParameter("scale", base.scale, positive);
  }

  get scale(): Tensor {
    return this.base.scale;
  }
  readonly support = nonNegative;
  override readonly hasRsample = true;
  override get mean(): Tensor {
    return this.scale.mul(Math.sqrt(2 / Math.PI));
  }
  override get mode(): Tensor {
    return zerosLike(this.scale);
  }
  override get variance(): Tensor {
    return tidy(() => this.scale.square().mul(1 - 2 / Math.PI));
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return tidy(() => this.base.draw(shape, options).abs());
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => where(value.ge(0), this.base.logProb(value).add(Math.LN2), Number.NEGATIVE_INFINITY));
  }

  override cdf(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => this.base.cdf(value).mul(2).sub(1));
  }

  override icdf(probability: Tensor): Tensor {
    return tidy(() => this.base.icdf(probability.add(1).div(2)));
  }

  override entropy(): Tensor {
    return tidy(() => this.base.entropy().sub(Math.LN2));
  }

  expand(batchShape: Shape): HalfNormal {
    return new HalfNormal(expandedTo(this.scale, batchShape), this.options);
  }
}
