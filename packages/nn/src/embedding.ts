import { gather, type Tensor } from "@opt/core";
import { checkExtents } from "./extent";
import { normal } from "./initializers";
import { type LayerOptions, weightOf } from "./layer-options";
import { Module } from "./module";

/**
 * Rows of a trained table: indices [...] of integers, weight [count, width], result [..., width]. An index out of range gives NaN.
 * The weight begins as N(0, 1), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_DTYPE unless the indices are integers
 * @example
 * const vectors = new Embedding(64, 32).forward(tensor([[3, 1, 4]], { dtype: "i32" })); // [1, 3, 32]
 */
export class Embedding extends Module {
  readonly weight: Tensor;

  constructor(count: number, width: number, options: LayerOptions = {}) {
    super();
    checkExtents("Embedding", { count, width });
    this.weight = normal(weightOf([count, width], options), 0, 1, options);
  }

  forward(indices: Tensor): Tensor {
    return gather(this.weight, indices);
  }
}
