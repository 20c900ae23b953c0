/** The Laplace distribution. */
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { log1p, sign } from "../functions";
import type { Tensor } from "../tensor/tensor";
import { epsilonOf } from "../values/float-limits";
import type { Shape } from "../values/shape";
import { positive, real } from "./constraints";
import type { DistributionOptions } from "./distribution";
import { Parametric } from "./parametric";
import { uniformNoise } from "./sampling/noise";

/**
 * The Laplace distribution: exp(-|x - loc| / scale) / (2 scale).
 *
 * @throws OptError BAD_ARGUMENT unless scale > 0; BAD_SHAPE, BAD_DTYPE
 * @example
 * new Laplace(0, 1).sample([3]);
 */
export class Laplace extends Parametric {
  declare readonly loc: Tensor;
  declare readonly scale: Tensor;

  constructor(loc: Tensor | number, scale: Tensor | number, options: DistributionOptions = {}) {
    super("Laplace", { loc: [loc, real], scale: [scale, positive] }, options);
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
    return tidy(() => this.scale.mul(Math.SQRT2));
  }
  override get variance(): Tensor {
    return tidy(() => this.scale.square().mul(2));
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return tidy(() => {
      const noise = uniformNoise(shape, this.loc, options, (u) => {
        // Never -1, whose logarithm is infinite.
        const epsilon = epsilonOf("f32");
        return atSide(u.mul(2 - epsilon).add(epsilon - 1), (distance) => log1p(distance.neg()));
      });
      return this.loc.sub(noise.mul(this.scale));
    });
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => this.scale.mul(2).log().neg().sub(value.sub(this.loc).abs().div(this.scale)));
  }

  override cdf(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() =>
      atSide(value.sub(this.loc), (distance) => distance.div(this.scale).neg().expm1())
        .mul(-0.5)
        .add(0.5),
    );
  }

  override icdf(probability: Tensor): Tensor {
    return tidy(() =>
      this.loc.sub(atSide(probability.sub(0.5), (distance) => log1p(distance.mul(-2))).mul(this.scale)),
    );
  }

  override entropy(): Tensor {
    return tidy(() => this.scale.mul(2).log().add(1));
  }

  expand(batchShape: Shape): Laplace {
    return this.expanded(batchShape, (loc, scale) => new Laplace(loc!, scale!, this.options));
  }
}

/** sign(x) f(|x|) */
const atSide = (x: Tensor, f: (distance: Tensor) => Tensor) => sign(x).mul(f(x.abs()));
