/** The Poisson distribution. */
import { rand } from "../create";
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { floor, lgamma, logicalAnd, where, xlogy } from "../functions";
import { computeIn } from "../ops/cast";
import { add, where as choose, div, exp, less, mul, neg } from "../rule/symbols";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { nonNegative, wholeNumber } from "./constraints";
import type { DistributionOptions } from "./distribution";
import { Parametric } from "./parametric";
import { formula } from "./sampling/formula";

/**
 * Counts of events that are independent of each other: rate^x exp(-rate) / x!, of integers x >= 0, as floats.
 *
 * @throws OptError BAD_ARGUMENT unless rate >= 0; BAD_DTYPE
 * @example
 * new Poisson(4).logProb(tensor([0, 4])); // [-4, -1.6329]
 */
export class Poisson extends Parametric {
  declare readonly rate: Tensor;

  constructor(rate: Tensor | number, options: DistributionOptions = {}) {
    super("Poisson", { rate: [rate, nonNegative] }, options);
  }

  readonly support = wholeNumber;
  override get mean(): Tensor {
    return this.rate;
  }
  override get mode(): Tensor {
    return floor(this.rate);
  }
  override get variance(): Tensor {
    return this.rate;
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    const { dtype, device } = this.rate;
    const compute = device.backend.dtypes.includes("f64") ? "f64" : "f32";
    return computeIn(compute, [this.rate.detach()], dtype, (rate) => {
      const next = () => rand(shape, { dtype: compute, device, ...options });
      const few = counted(rate.clamp(null, FEW), next());
      let many = floor(rate);
      for (let i = 0; i < PROPOSALS; i++) many = proposed(rate.clamp(FEW), many, next(), next());
      return where(rate.lt(FEW), few, many);
    });
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() =>
      xlogy(value, this.rate)
        .sub(this.rate)
        .sub(lgamma(value.add(1))),
    );
  }

  expand(batchShape: Shape): Poisson {
    return this.expanded(batchShape, (rate) => new Poisson(rate!, this.options));
  }
}

/** Up to this rate counts are searched, from 0 on; they are at most MOST in all but 1e-8 of the cases. */
const FEW = 10;
const MOST = 36;
/** All are rejected in 2e-8 of the cases, which get the rate. */
const PROPOSALS = 10;

/** How many sums of probabilities a uniform number is above. */
const counted = /* @__PURE__ */ formula((rate, u) => {
  let [probability, sum] = [exp(neg(rate!)), exp(neg(rate!))];
  let count = choose(less(u!, sum), 0, 1);
  for (let k = 1; k < MOST; k++) {
    probability = mul(probability, div(rate!, k));
    sum = add(sum, probability);
    count = add(count, choose(less(u!, sum), 0, 1));
  }
  return count;
});

/** Hörmann 1993: a count of uniform numbers u and v, or `other` where it is rejected. */
function proposed(rate: Tensor, other: Tensor, u: Tensor, v: Tensor): Tensor {
  return tidy(() => {
    const b = rate.sqrt().mul(2.53).add(0.931);
    const a = b.mul(0.02483).sub(0.059);
    const centered = u.sub(0.5);
    const distance = centered.abs().neg().add(0.5);
    const count = floor(a.mul(2).div(distance).add(b).mul(centered).add(rate).add(0.43));
    const inverse = b.sub(3.4).pow(-1).mul(1.1328).add(1.1239);
    const level = v.mul(inverse).div(a.div(distance.square()).add(b)).log();
    const isLikely = level.le(
      count
        .mul(rate.log())
        .sub(rate)
        .sub(lgamma(count.clamp(0).add(1))),
    );
    return where(logicalAnd(count.ge(0), isLikely), count, other);
  });
}
