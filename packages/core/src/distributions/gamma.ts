/** The gamma distribution. */
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { digamma, lgamma, sub, xlogy } from "../functions";
import { withGradient } from "../ops";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { tiniestOf } from "../values/float-limits";
import type { Shape } from "../values/shape";
import { nonNegative, positive } from "./constraints";
import { type DistributionOptions, expandedTo } from "./distribution";
import { Parametric } from "./parametric";
import { standardGamma } from "./sampling/standard-gamma";

/**
 * The gamma distribution: rate^concentration x^(concentration - 1) exp(-rate x) / gamma(concentration), of x >= 0. Samples are PyTorch's
 * in distribution, not in bits; their gradients are PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT unless concentration > 0 and rate > 0; BAD_SHAPE, BAD_DTYPE
 * @example
 * new Gamma(tensor([1, 4]), 2).mean; // [0.5, 2]
 */
export class Gamma extends Parametric {
  declare readonly concentration: Tensor;
  declare readonly rate: Tensor;

  constructor(concentration: Tensor | number, rate: Tensor | number, options: DistributionOptions = {}) {
    super("Gamma", { concentration: [concentration, positive], rate: [rate, positive] }, options);
  }

  readonly support = nonNegative;
  override readonly hasRsample = true;
  override get mean(): Tensor {
    return this.concentration.div(this.rate);
  }
  override get mode(): Tensor {
    return tidy(() => this.concentration.sub(1).div(this.rate).clamp(0));
  }
  override get variance(): Tensor {
    return tidy(() => this.concentration.div(this.rate.square()));
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return tidy(() => {
      const value = standardGamma(expandedTo(this.concentration, shape), options).div(this.rate);
      const positive = noGrad(() => value.maximum(tiniestOf(value.dtype)));
      return withGradient(positive, [value], (g) => [g]);
    });
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => {
      const { concentration, rate } = this;
      const density = xlogy(concentration, rate).add(xlogy(concentration.sub(1), value));
      return density.sub(rate.mul(value)).sub(lgamma(concentration));
    });
  }

  override entropy(): Tensor {
    return tidy(() => {
      const { concentration, rate } = this;
      const logarithms = concentration.sub(rate.log()).add(lgamma(concentration));
      return logarithms.add(sub<Tensor>(1, concentration).mul(digamma(concentration)));
    });
  }

  expand(batchShape: Shape): Gamma {
    return this.expanded(batchShape, (concentration, rate) => new Gamma(concentration!, rate!, this.options));
  }
}
