/** The distribution of numbers whose logarithm is normal. */
import { tidy } from "../device/scope";
import { checkOptions } from "../errors/options";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { DISTRIBUTION_OPTIONS, type DistributionOptions, expandedTo } from "./distribution";
import { Normal } from "./normal";
import { TransformedDistribution } from "./transformed-distribution";
import { ExpTransform } from "./transforms/elementwise";

/**
 * The distribution of e^x, with x of `Normal(loc, scale)`.
 *
 * @throws OptError BAD_ARGUMENT unless scale > 0; BAD_SHAPE, BAD_DTYPE
 * @example
 * new LogNormal(0, tensor([1, 0.5])).mean; // [1.6487, 1.1331]
 */
export class LogNormal extends TransformedDistribution {
  override readonly name = "LogNormal";
  readonly loc: Tensor;
  readonly scale: Tensor;

  constructor(loc: Tensor | number, scale: Tensor | number, options: DistributionOptions = {}) {
    checkOptions("LogNormal", options, DISTRIBUTION_OPTIONS);
    const base = new Normal(loc, scale, options);
    super(base, new ExpTransform(), options);
    this.loc = base.loc;
    this.scale = base.scale;
  }

  override get mean(): Tensor {
    return tidy(() => this.loc.add(this.scale.square().div(2)).exp());
  }
  override get mode(): Tensor {
    return tidy(() => this.loc.sub(this.scale.square()).exp());
  }
  override get variance(): Tensor {
    return tidy(() => {
      const square = this.scale.square();
      return square.expm1().mul(this.loc.mul(2).add(square).exp());
    });
  }

  override entropy(): Tensor {
    return tidy(() => this.base.entropy().add(this.loc));
  }

  override expand(batchShape: Shape): LogNormal {
    return new LogNormal(expandedTo(this.loc, batchShape), expandedTo(this.scale, batchShape), this.options);
  }
}
