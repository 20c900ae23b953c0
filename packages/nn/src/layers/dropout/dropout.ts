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
  type Shape,
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

/** x times a mask of that shape: 0 with probability p, else 1 / (1 - p). */
function masked(x: Tensor, shape: Shape, p: number, generator: Generator): Tensor {
  if (p === 0) return x.reshape(x.shape);
  if (p === 1) return x.mul(0);
  return tidy(() => {
    const draws = rand(shape, { device: x.device, generator });
    const scale = full([], 1 / (1 - p), { device: x.device });
    return x.mul(where(less(draws, p), 0, scale).to(x.dtype));
  });
}

/** Zeros by a mask that is drawn for each call. */
abstract class Masked extends Module {
  readonly p: number;
  readonly #generator: Generator;

  constructor(p = 0.5, options: DropoutOptions = {}) {
    super();
    const name = new.target.name;
    checkOptions(name, options, { generator: "object" });
    const { generator = defaultGenerator } = options;
    checkGenerator(name, generator);
    checkShare(name, "p", p);
    this.p = p;
    this.#generator = generator;
  }

  forward(x: Tensor): Tensor {
    const name = this.constructor.name;
    checkTensor(name, x);
    checkShare(name, "p", this.p); // it may have been set since
    const shape = this.drawn(x.shape);
    return this.training ? masked(x, shape, this.p, this.#generator) : x.reshape(x.shape);
  }

  /** The shape of the mask, which is broadcast. */
  protected abstract drawn(shape: Shape): Shape;

  override describe(): string {
    return `p=${this.p}`;
  }
}

/**
 * In training, each element is 0 with probability p and otherwise x / (1 - p); else a view of x (Srivastava et al. 2014).
 * The seeded generator gives the same mask on every device.
 *
 * @throws OptError BAD_ARGUMENT unless 0 <= p <= 1
 */
export class Dropout extends Masked {
  protected override drawn(shape: Shape): Shape {
    return shape;
  }
}

/**
 * As `Dropout`, but whole channels are 0: [batch, channels, length] or [channels, length].
 *
 * @throws OptError BAD_ARGUMENT unless 0 <= p <= 1; forward: BAD_SHAPE
 */
export class Dropout1d extends Masked {
  protected override drawn(shape: Shape): Shape {
    return channelsOf("Dropout1d", shape, ["length"]);
  }
}

/**
 * As `Dropout`, but whole channels are 0: [batch, channels, height, width] or [channels, height, width] (Tompson et al. 2015).
 *
 * @throws OptError BAD_ARGUMENT unless 0 <= p <= 1; forward: BAD_SHAPE
 */
export class Dropout2d extends Masked {
  protected override drawn(shape: Shape): Shape {
    return channelsOf("Dropout2d", shape, ["height", "width"]);
  }
}

/**
 * As `Dropout`, but whole channels are 0: [batch, channels, depth, height, width] or [channels, depth, height, width].
 *
 * @throws OptError BAD_ARGUMENT unless 0 <= p <= 1; forward: BAD_SHAPE
 */
export class Dropout3d extends Masked {
  protected override drawn(shape: Shape): Shape {
    return channelsOf("Dropout3d", shape, ["depth", "height", "width"]);
  }
}

export interface DropoutCall extends DropoutOptions {
  /** Without, it is a view of x: pass the module's `training`. Default true. */
  readonly training?: boolean;
}

/**
 * Each element is 0 with probability p and otherwise x / (1 - p): `Dropout` as a function.
 *
 * @throws OptError BAD_ARGUMENT unless 0 <= p <= 1
 * @example
 * const y = dropout(ones([4]), 0.5, { generator: new Generator(1) }); // each 0 or 2
 */
export function dropout(x: Tensor, p = 0.5, options: DropoutCall = {}): Tensor {
  checkTensor("dropout", x);
  checkShare("dropout", "p", p);
  checkOptions("dropout", options, { generator: "object", training: "boolean" });
  const { generator = defaultGenerator, training = true } = options;
  checkGenerator("dropout", generator);
  return training ? masked(x, x.shape, p, generator) : x.reshape(x.shape);
}

function channelsOf(where: string, shape: Shape, inside: readonly string[]): Shape {
  const along = inside.length;
  check(
    shape.length === along + 1 || shape.length === along + 2,
    "BAD_SHAPE",
    where,
    () => `the input must be [batch, channels, ${inside.join(", ")}], got [${shape}].`,
    "Dropout takes every shape.",
  );
  return shape.map((extent, axis) => (axis < shape.length - along ? extent : 1));
}
