import { defaultGenerator, type Generator, less, OptError, rand, select, type Tensor } from "@opt/core";
import { Module } from "./module";

/**
 * In training, each element is 0 with probability p and otherwise x / (1 - p); else x itself (Srivastava et al. 2014).
 * The seeded generator gives the same mask on every device.
 *
 * @throws OptError BAD_ARGUMENT unless 0 <= p <= 1
 */
export class Dropout extends Module {
  readonly #generator: Generator;

  constructor(
    readonly p = 0.5,
    { generator = defaultGenerator }: { readonly generator?: Generator } = {},
  ) {
    super();
    if (!(p >= 0 && p <= 1))
      throw new OptError("BAD_ARGUMENT", "Dropout", `p must be in [0, 1], got ${p}.`, "Use 0.1.");
    this.#generator = generator;
  }

  forward(x: Tensor): Tensor {
    if (!this.training || this.p === 0) return x;
    if (this.p === 1) return x.mul(0);
    const draws = rand(x.shape, { device: x.device, generator: this.#generator });
    const mask = select(less(draws, this.p), 0, 1 / (1 - this.p));
    return x.mul(mask.to(x.dtype));
  }
}
