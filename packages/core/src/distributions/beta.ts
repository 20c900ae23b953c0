/** The beta distribution. */
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { stack, sub } from "../functions";
import { slice, squeeze } from "../ops";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { positive, unitInterval } from "./constraints";
import { Dirichlet } from "./dirichlet";
import type { DistributionOptions } from "./distribution";
import { Parametric } from "./parametric";

/**
 * The beta distribution: x^(concentration1 - 1) (1 - x)^(concentration0 - 1), divided by its integral, of x from 0 to 1. Samples are
 * PyTorch's in distribution, not in bits; their gradients are PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT unless both concentrations > 0; BAD_SHAPE, BAD_DTYPE
 * @example
 * new Beta(2, tensor([2, 6])).mean; // [0.5, 0.25]
 */
export class Beta extends Parametric {
  declare readonly concentration1: Tensor;
  declare readonly concentration0: Tensor;

  constructor(concentration1: Tensor | number, concentration0: Tensor | number, options: DistributionOptions = {}) {
    super("Beta", { concentration1: [concentration1, positive], concentration0: [concentration0, positive] }, options);
  }

  readonly support = unitInterval;
  override readonly hasRsample = true;
  override get mean(): Tensor {
    return tidy(() => this.concentration1.div(this.#total()));
  }
  override get mode(): Tensor {
    return tidy(() => firstOf(this.#dirichlet().mode));
  }
  override get variance(): Tensor {
    return tidy(() => {
      const total = this.#total();
      return this.concentration1.mul(this.concentration0).div(total.square().mul(total.add(1)));
    });
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return tidy(() => firstOf(this.#dirichlet().draw([...shape, 2], options)));
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => this.#dirichlet().logProb(stack([value, sub<Tensor>(1, value)], -1)));
  }

  override entropy(): Tensor {
    return tidy(() => this.#dirichlet().entropy());
  }

  expand(batchShape: Shape): Beta {
    return this.expanded(
      batchShape,
      (concentration1, concentration0) => new Beta(concentration1!, concentration0!, this.options),
    );
  }

  #total(): Tensor {
    return this.concentration1.add(this.concentration0);
  }

  /** Of the shares of ones and zeros. */
  #dirichlet(): Dirichlet {
    return new Dirichlet(stack([this.concentration1, this.concentration0], -1), { validateArgs: false });
  }
}

const firstOf = (x: Tensor) => squeeze(slice(x, 0, 1, -1), -1);
