/** The categorical distribution, of vectors. */
import { tidy } from "../device/scope";
import type { DrawOptions } from "../draws";
import { oneHot, sub } from "../functions";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import { Categorical, type CategoricalOptions } from "./categorical";
import { oneHotVector } from "./constraints";
import { Distribution } from "./distribution";

/**
 * Vectors of zeros with a single 1, at the category.
 *
 * @throws OptError BAD_ARGUMENT for weights below 0, or with both or neither; BAD_SHAPE without an axis; BAD_DTYPE
 * @example
 * new OneHotCategorical({ probs: tensor([0, 1, 0]) }).sample(); // [0, 1, 0]
 */
export class OneHotCategorical extends Distribution {
  /** @internal The same by indices. */
  readonly categorical: Categorical;

  constructor(options: CategoricalOptions) {
    const categorical = new Categorical(options);
    super("OneHotCategorical", categorical.batchShape, [categorical.numEvents], options);
    this.categorical = categorical;
  }

  get probs(): Tensor {
    return this.categorical.probs;
  }
  get logits(): Tensor {
    return this.categorical.logits;
  }
  readonly support = oneHotVector;
  override get mean(): Tensor {
    return this.probs;
  }
  override get mode(): Tensor {
    return tidy(() => this.#vectors(this.categorical.mode));
  }
  override get variance(): Tensor {
    return tidy(() => {
      const { probs } = this;
      return probs.mul(sub<Tensor>(1, probs));
    });
  }

  /** @internal */
  draw(shape: Shape, options: DrawOptions): Tensor {
    return tidy(() => this.#vectors(this.categorical.draw(shape.slice(0, -1), options)));
  }

  logProb(value: Tensor): Tensor {
    this.checkValue(value);
    return tidy(() => this.categorical.logProb(value.argmax(-1)));
  }

  override entropy(): Tensor {
    return this.categorical.entropy();
  }

  expand(batchShape: Shape): OneHotCategorical {
    return new OneHotCategorical(this.categorical.expandedOptions(batchShape));
  }

  #vectors(indices: Tensor): Tensor {
    return oneHot(indices, this.eventShape[0]!).to(this.categorical.dtype);
  }
}
