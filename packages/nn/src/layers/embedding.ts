import { checkOptions, checkTensor, gather, gatherSparse, type Tensor } from "@opt/core";
import { normal } from "../initializers/initializers";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import { checkExtents } from "./extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "./layer-options";

export interface EmbeddingOptions extends LayerOptions {
  /** The weight's gradient is `RowSparse`: only the rows that were looked up. Default false. */
  readonly sparse?: boolean;
}

/**
 * Rows of a trained table: indices [...] of integers, weight [count, width], result [..., width]. The weight begins as N(0, 1), as PyTorch's.
 * An index out of range is refused where the device shares the host's memory, and gives NaN elsewhere.
 *
 * With `sparse` a step may cost what its rows cost, not what the table costs: see the optimizers' option `lazyMode`.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_DTYPE unless the indices are integers, BAD_ARGUMENT out of range
 * @example
 * const vectors = new Embedding(64, 32).forward(tensor([[3, 1, 4]], { dtype: "i32" })); // [1, 3, 32]
 */
export class Embedding extends Module {
  weight: Tensor;
  /** What it was made with. */
  readonly sparse: boolean;

  constructor(count: number, width: number, options: EmbeddingOptions = {}) {
    super();
    checkOptions("Embedding", options, { ...LAYER_OPTIONS, sparse: "boolean" });
    checkExtents("Embedding", { count, width });
    this.weight = normal(weightOf([count, width], options), 0, 1, drawnBy(options));
    holdParameters(this, ["weight"]);
    this.sparse = options.sparse ?? false;
  }

  forward(indices: Tensor): Tensor {
    checkTensor("Embedding", indices, "indices");
    return (this.sparse ? gatherSparse : gather)(this.weight, indices);
  }

  override describe(): string {
    return this.weight.shape.join(", ");
  }
}
