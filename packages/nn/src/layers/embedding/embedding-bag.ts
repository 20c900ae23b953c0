/** Sums, means and largest values of rows of a table, bag by bag. */
import {
  arange,
  check,
  checkOptions,
  checkTensor,
  concat,
  full,
  gather,
  pad,
  show,
  type Tensor,
  tidy,
  where,
} from "@opt/core";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { LAYER_OPTIONS, type LayerOptions } from "../layer-options";
import { LENGTH_OPTIONS, type LengthOptions, lengthsOf, lookUp, paddingRow, tableOf } from "./table";

export interface EmbeddingBagOptions extends LayerOptions, LengthOptions {
  /** What is made of the rows of a bag. Default "mean". */
  readonly mode?: "sum" | "mean" | "max";
  /** The weight's gradient is `RowSparse`: only the rows that were looked up. Default false. */
  readonly sparse?: boolean;
  /** The row that bags leave out: it begins as zeros and its gradient is 0. Negative ones count from the end. Default null: none. */
  readonly paddingIdx?: number | null;
  /** `offsets` ends with the number of indices, where the last bag ends. Default false. */
  readonly includeLastOffset?: boolean;
}

export interface EmbeddingBagCall {
  /** Where each bag begins among indices [places]: integers [bags], ascending from 0. */
  readonly offsets?: Tensor;
  /** Factors of the rows, of the indices' shape. For mode "sum". */
  readonly perSampleWeights?: Tensor;
}

const OPTIONS = {
  ...LAYER_OPTIONS,
  ...LENGTH_OPTIONS,
  mode: "any",
  sparse: "boolean",
  paddingIdx: "any",
  includeLastOffset: "boolean",
} as const;

/**
 * The sum, the mean or the largest values of bags of rows of a trained table: indices [bags, places], or [places] with `offsets`; weight
 * [count, width], result [bags, width]. Empty bags give zeros. The weight begins as N(0, 1), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1, another mode and a paddingIdx that is no row; forward: BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT
 * @example
 * const bags = new EmbeddingBag(64, 32, { mode: "sum" });
 * const offsets = tensor([0, 2], { dtype: "i32" });
 * const sums = bags.forward(tensor([3, 1, 4, 1, 5], { dtype: "i32" }), { offsets }); // [2, 32]: of rows 3, 1 and of rows 4, 1, 5
 */
export class EmbeddingBag extends Module {
  weight: Tensor;
  readonly mode: "sum" | "mean" | "max";
  readonly sparse: boolean;
  /** The row that is not trained, from 0 on. */
  readonly paddingIdx: number | null;
  readonly maxNorm: number | null;
  readonly normType: number;
  readonly includeLastOffset: boolean;

  constructor(count: number, width: number, options: EmbeddingBagOptions = {}) {
    super();
    const owner = "EmbeddingBag";
    checkOptions(owner, options, OPTIONS);
    const { mode = "mean", sparse = false, paddingIdx = null, includeLastOffset = false } = options;
    const { maxNorm, normType } = lengthsOf(owner, options);
    const isMode = mode === "sum" || mode === "mean" || mode === "max";
    check(isMode, "BAD_ARGUMENT", owner, () => `mode must be "sum", "mean" or "max", got ${show(mode)}.`);
    this.paddingIdx = paddingRow(owner, paddingIdx, count);
    this.weight = tableOf(owner, count, width, this.paddingIdx, options);
    this.mode = mode;
    this.sparse = sparse;
    this.maxNorm = maxNorm;
    this.normType = normType;
    this.includeLastOffset = includeLastOffset;
    holdParameters(this, ["weight"]);
  }

  forward(indices: Tensor, call: EmbeddingBagCall = {}): Tensor {
    const { mode, paddingIdx } = this;
    checkCall(mode, indices, call, this.includeLastOffset);
    const { offsets, perSampleWeights } = call;
    return tidy(() => {
      const rows = lookUp(this, indices);
      if (offsets !== undefined && indices.size === 0) {
        const bags = offsets.size - (this.includeLastOffset ? 1 : 0);
        return rows.sum(0, true).expand([bags, rows.shape[1]!]);
      }
      const isKept = (paddingIdx === null ? indices.ge(0) : indices.ne(paddingIdx)).unsqueeze(-1);
      const reduce =
        offsets === undefined
          ? (values: Tensor, by: Combine) => (by === "max" ? values.max(1) : values.sum(1))
          : byOffsets(this.#bounds(offsets, indices.size), indices.size);
      const counts = reduce(isKept.to(rows.dtype), "sum");
      if (mode === "max") {
        const largest = reduce(where(isKept, rows, Number.NEGATIVE_INFINITY), "max");
        return where(counts.gt(0), largest, 0);
      }
      const weighted = perSampleWeights === undefined ? rows : rows.mul(perSampleWeights.unsqueeze(-1));
      const sums = reduce(where(isKept, weighted, 0), "sum");
      return mode === "sum" ? sums : sums.div(counts.maximum(1));
    });
  }

  /** Where each bag begins and ends, i32 [bags]. */
  #bounds(offsets: Tensor, places: number): [starts: Tensor, ends: Tensor] {
    const begins = offsets.to("i32");
    if (this.includeLastOffset) return [begins.slice(0, -1), begins.slice(1)];
    const last = full([1], places, { dtype: "i32", device: offsets.device });
    return [begins, concat([begins.slice(1), last])];
  }

  override describe(): string {
    return `${this.weight.shape.join(", ")}, mode=${this.mode}`;
  }
}

type Combine = "sum" | "max";

/** Reduces rows [places, ...] bag by bag, in log2(places) rounds: after each, a row holds its bag's rows of twice as many places. */
function byOffsets([starts, ends]: [starts: Tensor, ends: Tensor], places: number) {
  const { device } = starts;
  const positions = arange(places, { dtype: "i32", device });
  const bag = starts.unsqueeze(0).le(positions.unsqueeze(1)).to("i32").sum(1);
  const isFull = starts.lt(ends).unsqueeze(-1);
  const last = ends.sub(1).clamp(0, places - 1);
  return (values: Tensor, by: Combine): Tensor => {
    let rows = values;
    for (let reach = 1; reach < places; reach *= 2) {
      const isSame = pad(bag.slice(0, places - reach), [reach, 0], { value: -1 })
        .eq(bag)
        .unsqueeze(-1);
      const before = pad(rows.slice(0, places - reach), [0, 0, reach, 0]);
      rows = where(isSame, by === "max" ? rows.maximum(before) : rows.add(before), rows);
    }
    return where(isFull, gather(rows, last), 0);
  };
}

/** @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT */
function checkCall(mode: string, indices: Tensor, call: EmbeddingBagCall, includeLastOffset: boolean): void {
  const owner = "EmbeddingBag";
  checkTensor(owner, indices, "indices");
  checkOptions(owner, call, { offsets: "any", perSampleWeights: "any" });
  const { offsets, perSampleWeights } = call;
  const rank = offsets === undefined ? 2 : 1;
  check(
    indices.shape.length === rank && (rank === 1 || indices.shape[1]! > 0),
    "BAD_SHAPE",
    owner,
    () => `indices must be [bags, places] with a place at least, or [places] with offsets, got [${indices.shape}].`,
    "Pass { offsets } for bags of several lengths.",
  );
  if (offsets !== undefined) {
    checkTensor(owner, offsets, "offsets");
    const isInteger = offsets.dtype === "i32" || offsets.dtype === "u8";
    check(isInteger, "BAD_DTYPE", owner, () => `offsets must be integers, got ${offsets.dtype}.`, 'Use dtype: "i32".');
    const isNeeded = includeLastOffset || indices.size > 0;
    const fits = offsets.shape.length === 1 && (offsets.size > 0 || !isNeeded);
    check(fits, "BAD_SHAPE", owner, () => `offsets must be [bags], got [${offsets.shape}].`);
  }
  if (perSampleWeights === undefined) return;
  checkTensor(owner, perSampleWeights, "perSampleWeights");
  check(
    mode === "sum",
    "BAD_ARGUMENT",
    owner,
    () => `perSampleWeights needs mode "sum", got "${mode}".`,
    "Multiply the weights yourself.",
  );
  const fits = String(perSampleWeights.shape) === String(indices.shape);
  check(
    fits,
    "BAD_SHAPE",
    owner,
    () => `perSampleWeights must be [${indices.shape}], as the indices, got [${perSampleWeights.shape}].`,
  );
}
