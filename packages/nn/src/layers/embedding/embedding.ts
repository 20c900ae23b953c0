import {
  arange,
  check,
  checkOptions,
  checkTensor,
  gather,
  gatherSparse,
  show,
  type Tensor,
  tidy,
  where,
} from "@opt/core";
import { normal } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { checkExtents } from "../extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";

export interface EmbeddingOptions extends LayerOptions {
  /** The weight's gradient is `RowSparse`: only the rows that were looked up. Default false. */
  readonly sparse?: boolean;
  /** The row of what only fills up: it begins as zeros and its gradient is 0. Negative ones count from the end. Default null: none. */
  readonly paddingIdx?: number | null;
}

/**
 * Rows of a trained table: indices [...] of integers, weight [count, width], result [..., width]. The weight begins as N(0, 1), as PyTorch's.
 * An index out of range is refused where the device shares the host's memory, and gives NaN elsewhere.
 *
 * With `sparse` a step may cost what its rows cost, not what the table costs: see the optimizers' option `lazyMode`.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1, a paddingIdx that is no row, or one with `sparse`; forward: BAD_DTYPE unless the indices are integers, BAD_ARGUMENT out of range
 * @example
 * const vectors = new Embedding(64, 32).forward(tensor([[3, 1, 4]], { dtype: "i32" })); // [1, 3, 32]
 */
export class Embedding extends Module {
  weight: Tensor;
  /** What it was made with. */
  readonly sparse: boolean;
  /** The row that is not trained, from 0 on. */
  readonly paddingIdx: number | null;

  constructor(count: number, width: number, options: EmbeddingOptions = {}) {
    super();
    checkOptions("Embedding", options, { ...LAYER_OPTIONS, sparse: "boolean", paddingIdx: "any" });
    checkExtents("Embedding", { count, width });
    const { sparse = false, paddingIdx = null } = options;
    const isRow =
      paddingIdx === null || (Number.isInteger(paddingIdx) && paddingIdx >= -count && paddingIdx < count && !sparse);
    const problem = () => `paddingIdx must be null or, without sparse, a row of ${count}, got ${show(paddingIdx)}.`;
    check(isRow, "BAD_ARGUMENT", "Embedding", problem, "For example 0.");
    this.weight = normal(weightOf([count, width], options), 0, 1, drawnBy(options));
    holdParameters(this, ["weight"]);
    this.sparse = sparse;
    this.paddingIdx = paddingIdx !== null && paddingIdx < 0 ? paddingIdx + count : paddingIdx;
    if (this.paddingIdx !== null) this.#clearPadding(this.paddingIdx);
  }

  forward(indices: Tensor): Tensor {
    checkTensor("Embedding", indices, "indices");
    const { weight, sparse, paddingIdx } = this;
    if (paddingIdx === null) return (sparse ? gatherSparse : gather)(weight, indices);
    return tidy(() => {
      const rows = gather(weight, indices);
      return where(indices.ne(paddingIdx).unsqueeze(-1), rows, rows.detach());
    });
  }

  #clearPadding(row: number): void {
    tidy(() => {
      const { weight } = this;
      const places = arange(weight.shape[0]!, { dtype: "i32", device: weight.device }).unsqueeze(-1);
      const values = weight.detach();
      weight.set(where(places.ne(row), values, 0));
    });
  }

  override describe(): string {
    const { weight, paddingIdx } = this;
    return weight.shape.join(", ") + (paddingIdx === null ? "" : `, paddingIdx=${paddingIdx}`);
  }
}
