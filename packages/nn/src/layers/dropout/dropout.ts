import {
  check,
  checkGenerator,
  checkOptions,
  checkTensor,
  defaultGenerator,
  full,
  type Generator,
  less,
  rand,
  show,
  type Tensor,
  tidy,
  where,
} from "@opt/core";
import { Module } from "../../module/module";

export interface DropoutOptions {
  /** By default the generator that `manualSeed` seeds. */
  readonly generator?: Generator;
}

/** @throws OptError BAD_ARGUMENT */
export function checkShare(where: string, name: string, share: unknown): void {
  const isShare = typeof share === "number" && share >= 0 && share <= 1;
  check(isShare, "BAD_ARGUMENT", where, () => `${name} must be in [0, 1], got ${show(share)}.`, "Use 0.1.");
}

/**
 * In training, each element is 0 with probability p and otherwise x / (1 - p); else a view of x (Srivastava et al. 2014).
 * The seeded generator gives the same mask on every device.
 *
 * @throws OptError BAD_ARGUMENT unless 0 <= p <= 1
 */
export class Dropout extends Module {
  readonly p: number;
  readonly #generator: Generator;

  constructor(p = 0.5, options: DropoutOptions = {}) {
    super();
    checkOptions("Dropout", options, { generator: "object" });
    const { generator = defaultGenerator } = options;
    checkGenerator("Dropout", generator);
    checkShare("Dropout", "p", p);
    this.p = p;
    this.#generator = generator;
  }

  forward(x: Tensor): Tensor {
    checkTensor("Dropout", x);
    checkShare("Dropout", "p", this.p); // it may have been set since
    if (!this.training || this.p === 0) return x.reshape(x.shape);
    if (this.p === 1) return x.mul(0);
    return tidy(() => {
      const draws = rand(x.shape, { device: x.device, generator: this.#generator });
      const scale = full([], 1 / (1 - this.p), { device: x.device });
      const mask = where(less(draws, this.p), 0, scale);
      return x.mul(mask.to(x.dtype));
    });
  }

  override describe(): string {
    return `p=${this.p}`;
  }
}
