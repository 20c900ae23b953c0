import { checkOptions, checkTensor, type Tensor } from "@opt/core";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { LAYER_OPTIONS, type LayerOptions } from "../layer-options";
import { LENGTH_OPTIONS, type LengthOptions, lengthsOf, lookUp, paddingRow, tableOf } from "./table";

export interface EmbeddingOptions extends LayerOptions, LengthOptions {
  /** The weight's gradient is `RowSparse`: only the rows that were looked up. Default false. */
  readonly sparse?: boolean;
  /** The row of what only fills up: it begins as zeros and its gradient is 0. Negative ones count from the end. Default null: none. */
  readonly paddingIdx?: number | null;
}

/**
 * Rows of a trained table: indices [...] of integers, weight [count, width], result [..., width]. The weight begins as N(0, 1), as PyTorch's.
 * An index out of range throws where the device shares the host's memory, and gives NaN elsewhere.
 *
 * With `sparse` a step may cost what its rows cost, not what the table costs: see the optimizers' option `lazyMode`.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1, a paddingIdx that is no row; forward: BAD_DTYPE unless the indices are integers, BAD_ARGUMENT out of range
 * @example
 * const vectors = new Embedding(64, 32).forward(tensor([[3, 1, 4]], { dtype: "i32" })); // [1, 3, 32]
 */
export class Embedding extends Module {
  weight: Tensor;
  /** What it was made with. */
  readonly sparse: boolean;
  /** The row that is not trained, from 0 on. */
  readonly paddingIdx: number | null;
  readonly maxNorm: number | null;
  readonly normType: number;

  constructor(count: number, width: number, options: EmbeddingOptions = {}) {
    super();
    checkOptions("Embedding", options, { ...LAYER_OPTIONS, ...LENGTH_OPTIONS, sparse: "boolean", paddingIdx: "any" });
    const { sparse = false, paddingIdx = null } = options;
    const { maxNorm, normType } = lengthsOf("Embedding", options);
    this.paddingIdx = paddingRow("Embedding", paddingIdx, count);
    this.weight = tableOf("Embedding", count, width, this.paddingIdx, options);
    this.sparse = sparse;
    this.maxNorm = maxNorm;
    this.normType = normType;
    holdParameters(this, ["weight"]);
  }

  forward(indices: Tensor): Tensor {
    checkTensor("Embedding", indices, "indices");
    return lookUp(this, indices);
  }

  override describe(): string {
    const { weight, paddingIdx } = this;
    const { maxNorm } = this;
    const own = { paddingIdx, maxNorm };
    const settings = Object.entries(own).map(([name, value]) => (value === null ? "" : `, ${name}=${value}`));
    return weight.shape.join(", ") + settings.join("");
  }
}
