/** The Dirichlet distribution. */
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { all, digamma, lgamma, oneHot, where, xlogy } from "../functions";
import { cast } from "../ops";
import { overSamples } from "../tensor/batching";
import { noGrad, record } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { epsilonOf, tiniestOf } from "../values/float-limits";
import type { Shape } from "../values/shape";
import { independentConstraint, positive, simplex } from "./constraints";
import { checkFloats, DISTRIBUTION_OPTIONS, Distribution, type DistributionOptions, expandedTo } from "./distribution";
import { dirichletSlope } from "./sampling/dirichlet-slope";
import { logStandardGamma } from "./sampling/standard-gamma";

/**
 * Vectors x >= 0 with the sum 1: the density is the product of x^(concentration - 1), divided by its integral. Samples are PyTorch's in
 * distribution, not in bits; their gradients are PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT unless concentration > 0; BAD_SHAPE without an axis; BAD_DTYPE
 * @example
 * new Dirichlet(tensor([1, 2, 1])).mean; // [0.25, 0.5, 0.25]
 */
export class Dirichlet extends Distribution {
  readonly concentration: Tensor;

  constructor(concentration: Tensor, options: DistributionOptions = {}) {
    checkOptions("Dirichlet", options, DISTRIBUTION_OPTIONS);
    checkFloats("Dirichlet", concentration, "concentration");
    const { shape } = concentration;
    check(shape.length >= 1, "BAD_SHAPE", "Dirichlet", () => "concentration must have an axis, got shape [].");
    super("Dirichlet", shape.slice(0, -1), shape.slice(-1), options);
    this.concentration = concentration;
    this.checkParameter("concentration", concentration, independentConstraint(positive, 1));
  }

  readonly support = simplex;
  override readonly hasRsample = true;
  override get mean(): Tensor {
    return tidy(() => this.concentration.div(this.concentration.sum(-1, true)));
  }
  override get mode(): Tensor {
    return tidy(() => {
      const { concentration } = this;
      const above = concentration.sub(1).clamp(0);
      const mode = above.div(above.sum(-1, true));
      const corner = oneHot(mode.argmax(-1), this.eventShape[0]!).to(mode.dtype);
      return where(all(concentration.lt(1), -1, true), corner, mode);
    });
  }
  override get variance(): Tensor {
    return tidy(() => {
      const total = this.concentration.sum(-1, true);
      const above = this.concentration.mul(total.sub(this.concentration));
      return above.div(total.square().mul(total.add(1)));
    });
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return tidy(() => sharesOf(expandedTo(this.concentration, shape), options));
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => {
      const { concentration } = this;
      const density = xlogy(concentration.sub(1), value).sum(-1);
      return density.add(lgamma(concentration.sum(-1))).sub(lgamma(concentration).sum(-1));
    });
  }

  override entropy(): Tensor {
    return tidy(() => {
      const { concentration } = this;
      const total = concentration.sum(-1);
      const logIntegral = lgamma(concentration).sum(-1).sub(lgamma(total));
      const ofTotal = total.sub(this.eventShape[0]!).mul(digamma(total));
      return logIntegral.add(ofTotal).sub(concentration.sub(1).mul(digamma(concentration)).sum(-1));
    });
  }

  expand(batchShape: Shape): Dirichlet {
    return new Dirichlet(expandedTo(this.concentration, [...batchShape, ...this.eventShape]), this.options);
  }
}

/** A sample for each row of concentrations. */
function sharesOf(concentration: Tensor, options: DrawOptions): Tensor {
  const samples = overSamples(sharesOf, concentration, options);
  if (samples) return samples;
  const { dtype } = concentration;
  const output = noGrad(() =>
    tidy(() => {
      const logs = logStandardGamma(concentration, options);
      // Not by softmax, whose words differ on devices that fuse no products.
      const parts = logs.sub(logs.max(-1, true)).exp();
      const shares = cast(parts.div(parts.sum(-1, true)), dtype);
      return shares.clamp(tiniestOf(dtype), 1 - epsilonOf(dtype) / 2);
    }),
  );
  return record("Dirichlet", output, [concentration], [concentration, output], (g, [alpha, x]) => [
    tidy(() => {
      const total = expandedTo(alpha!.sum(-1, true), x!.shape);
      const along = g.sub(x!.mul(g).sum(-1, true));
      return dirichletSlope(x!, alpha!, total).mul(along);
    }),
  ]);
}
