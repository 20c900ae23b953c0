/** The Bernoulli distribution: coins. */
import { tidy } from "../device/scope";
import { bernoulli, type DrawOptions } from "../draws";
import { checkOptions } from "../errors/options";
import { log1p, logsigmoid, sigmoid, sub, where } from "../functions";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { epsilonOf } from "../values/float-limits";
import type { Shape } from "../values/shape";
import { real, unitInterval, zeroOrOne } from "./constraints";
import { broadcastAll, Distribution, type DistributionOptions, expandedTo } from "./distribution";
import { oneOf, PROBABILITY_OPTIONS } from "./probs-or-logits";

/** Either of them. */
export interface BernoulliOptions extends DistributionOptions {
  /** The probability of 1. */
  readonly probs?: Tensor | number;
  /** log(probs / (1 - probs)) */
  readonly logits?: Tensor | number;
}

/**
 * 1 with the probability `probs`, else 0.
 *
 * @throws OptError BAD_ARGUMENT unless probs are from 0 to 1, or with both or neither; BAD_DTYPE
 * @example
 * new Bernoulli({ logits: tensor([0, 2]) }).mean; // [0.5, 0.8808]
 * new Bernoulli({ probs: 0.3 }).sample([10]);
 */
export class Bernoulli extends Distribution {
  readonly #given: "probs" | "logits";
  readonly #parameter: Tensor;

  constructor(options: BernoulliOptions) {
    checkOptions("Bernoulli", options, PROBABILITY_OPTIONS);
    const { name, value } = oneOf("Bernoulli", options);
    const [parameter] = broadcastAll("Bernoulli", value);
    super("Bernoulli", parameter.shape, [], options);
    this.#given = name;
    this.#parameter = parameter;
    this.checkParameter(name, parameter, name === "probs" ? unitInterval : real);
  }

  get probs(): Tensor {
    return this.#given === "probs" ? this.#parameter : sigmoid(this.#parameter);
  }
  /** log(probs / (1 - probs)), of which the dtype's rounding keeps the probabilities from 0 and 1. */
  get logits(): Tensor {
    const { dtype } = this.#parameter;
    if (this.#given === "logits") return this.#parameter;
    return tidy(() => {
      const inside = this.probs.clamp(epsilonOf(dtype), 1 - epsilonOf(dtype));
      return inside.log().sub(log1p(inside.neg()));
    });
  }

  readonly support = zeroOrOne;
  override get mean(): Tensor {
    return this.probs;
  }
  /** NaN where both are as likely. */
  override get mode(): Tensor {
    return tidy(() => {
      const { probs } = this;
      return noGrad(() => where(probs.eq(0.5), Number.NaN, probs.ge(0.5).to(probs.dtype)));
    });
  }
  override get variance(): Tensor {
    return tidy(() => {
      const { probs } = this;
      return probs.mul(sub<Tensor>(1, probs));
    });
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return tidy(() => bernoulli(expandedTo(this.probs, shape), options));
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => crossEntropy(this.logits, value).neg());
  }

  override entropy(): Tensor {
    return tidy(() => crossEntropy(this.logits, this.probs));
  }

  expand(batchShape: Shape): Bernoulli {
    return new Bernoulli({ [this.#given]: expandedTo(this.#parameter, batchShape), ...this.options });
  }
}

/** -(y log p + (1 - y) log(1 - p)), with p = sigmoid(logits). */
const crossEntropy = (logits: Tensor, y: Tensor) => sub<Tensor>(1, y).mul(logits).sub(logsigmoid(logits));
