/** The categorical distribution: indices of categories. */
import { full } from "../create";
import { tidy } from "../device/scope";
import { type DrawOptions, multinomial } from "../draws";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { gatherAlong, logsumexp, softmax } from "../functions";
import { transpose } from "../ops";
import type { Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";
import { epsilonOf, largestOf } from "../values/float-limits";
import { broadcastShapes, type Shape, sizeOf } from "../values/shape";
import { type Constraint, integersBelow, realVector, simplex } from "./constraints";
import { checkFloats, Distribution, type DistributionOptions, expandedTo } from "./distribution";
import { oneOf, PROBABILITY_OPTIONS } from "./probs-or-logits";

/** Either of them, with the categories on the last axis. */
export interface CategoricalOptions extends DistributionOptions {
  /** Weights >= 0, which are divided by their sum. */
  readonly probs?: Tensor;
  /** Their logarithms, of any sum. */
  readonly logits?: Tensor;
}

/**
 * Indices (i32) from 0 to below the number of categories, with these probabilities.
 *
 * @throws OptError BAD_ARGUMENT for weights below 0, or with both or neither; BAD_SHAPE without an axis; BAD_DTYPE
 * @example
 * const policy = new Categorical({ logits: tensor([[0, 1, 2]]) });
 * const action = policy.sample(); // [1]
 * policy.logProb(action).mul(-1).sum();
 */
export class Categorical extends Distribution {
  readonly support: Constraint;
  readonly #given: "probs" | "logits";
  readonly #parameter: Tensor;

  constructor(options: CategoricalOptions) {
    checkOptions("Categorical", options, PROBABILITY_OPTIONS);
    const { name, value } = oneOf("Categorical", options);
    checkFloats("Categorical", value, name);
    const { shape } = value;
    check(shape.length >= 1, "BAD_SHAPE", "Categorical", () => `${name} must have an axis of categories, got [].`);
    super("Categorical", shape.slice(0, -1), [], options);
    this.#given = name;
    this.#parameter = tidy(() =>
      name === "probs" ? value.div(value.sum(-1, true)) : value.sub(logsumexp(value, -1, true)),
    );
    this.checkParameter(name, this.#parameter, name === "probs" ? simplex : realVector);
    this.support = integersBelow(shape.at(-1)!);
  }

  /** @internal */
  get dtype(): DType {
    return this.#parameter.dtype;
  }
  /** The number of categories. */
  get numEvents(): number {
    return this.#parameter.shape.at(-1)!;
  }
  /** The probabilities, whose sum is 1. */
  get probs(): Tensor {
    return this.#given === "probs" ? this.#parameter : softmax(this.#parameter);
  }
  /** Their logarithms, at least that of the dtype's rounding where `probs` were given. */
  get logits(): Tensor {
    const epsilon = epsilonOf(this.dtype);
    if (this.#given === "logits") return this.#parameter;
    return tidy(() => this.#parameter.clamp(epsilon, 1 - epsilon).log());
  }

  /** NaN: categories have no mean. */
  override get mean(): Tensor {
    const { dtype, device } = this.#parameter;
    return full(this.batchShape, Number.NaN, { dtype, device });
  }
  override get mode(): Tensor {
    return tidy(() => this.probs.argmax(-1));
  }
  /** NaN: categories have no variance. */
  override get variance(): Tensor {
    return this.mean;
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return tidy(() => {
      const rows = this.probs.reshape([sizeOf(this.batchShape), this.numEvents]);
      const count = sizeOf(shape.slice(0, shape.length - this.batchShape.length));
      return transpose(multinomial(rows, count, { replacement: true, ...options })).reshape(shape);
    });
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => {
      const { logits } = this;
      const batch = broadcastShapes(this.name, [value.shape, this.batchShape]);
      const index = expandedTo(value.to("i32"), batch).unsqueeze(-1);
      return gatherAlong(expandedTo(logits, [...batch, this.numEvents]), index, -1).squeeze(-1);
    });
  }

  override entropy(): Tensor {
    return tidy(() => {
      const logits = this.logits.clamp(-largestOf(this.dtype));
      return logits.mul(this.probs).sum(-1).neg();
    });
  }

  expand(batchShape: Shape): Categorical {
    return new Categorical(this.expandedOptions(batchShape));
  }

  /** @internal Of the same one in a larger batch. */
  expandedOptions(batchShape: Shape): CategoricalOptions {
    const parameter = expandedTo(this.#parameter, [...batchShape, this.numEvents]);
    return { [this.#given]: parameter, ...this.options };
  }
}
