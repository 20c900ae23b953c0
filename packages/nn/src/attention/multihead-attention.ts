import { arange, check, checkOptions, checkTensor, full, type Generator, type Tensor, tidy, where } from "@opt/core";
import { xavierUniform, zeros } from "../initializers/initializers";
import { checkShare } from "../layers/dropout/dropout";
import { checkExtents } from "../layers/extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "../layers/layer-options";
import { Linear } from "../layers/linear";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import { attentionWeights, checkMask, scaledDotProductAttention } from "./scaled-dot-product-attention";

export interface MultiheadAttentionOptions extends LayerOptions {
  /** The share of attention weights that are dropped in training. Default 0. */
  readonly dropout?: number;
  readonly bias?: boolean;
  /** Inputs are [batch, places, width] instead of [places, batch, width]. Default false, as PyTorch's. */
  readonly batchFirst?: boolean;
}

export interface MultiheadAttentionCall {
  /** bool [batch, keys], true where a key is to be ignored; or floats, which are added to the scores. */
  readonly keyPaddingMask?: Tensor;
  /** [queries, keys] or [batch * heads, queries, keys]: bool, true where a query may not see a key; or floats, which are added. */
  readonly attnMask?: Tensor;
  /** Each query sees the keys up to its own place alone. Default false. */
  readonly isCausal?: boolean;
  /** Returns the weights as well. Default true. */
  readonly needWeights?: boolean;
  /** The average of the heads' weights, instead of each head's. Default true. */
  readonly averageAttnWeights?: boolean;
}

const CALL = {
  keyPaddingMask: "any",
  attnMask: "any",
  isCausal: "boolean",
  needWeights: "boolean",
  averageAttnWeights: "boolean",
} as const;

/**
 * Attention in several heads at once (Vaswani et al. 2017): query, key and value are projected, each head attends with its share of the
 * width, and what the heads give is projected once more. Parameters have PyTorch's names.
 *
 * @throws OptError BAD_ARGUMENT for a width that the heads do not divide; forward: BAD_SHAPE, and BAD_DTYPE for masks of integers
 * @example
 * const x = rand([2, 6, 8]);
 * const [y, weights] = new MultiheadAttention(8, 2, { batchFirst: true }).forward(x, x, x); // [2, 6, 8] and [2, 6, 6]
 */
export class MultiheadAttention extends Module {
  readonly in_proj_weight: Tensor;
  readonly in_proj_bias: Tensor | null;
  readonly out_proj: Linear;
  readonly heads: number;
  readonly dropout: number;
  readonly batchFirst: boolean;
  readonly #generator: Generator | undefined;

  constructor(width: number, heads: number, options: MultiheadAttentionOptions = {}) {
    super();
    const where = "MultiheadAttention";
    checkOptions(where, options, { dropout: "number", bias: "boolean", batchFirst: "boolean", ...LAYER_OPTIONS });
    checkExtents(where, { width, heads });
    const divides = width % heads === 0;
    check(
      divides,
      "BAD_ARGUMENT",
      where,
      () => `heads must divide the width ${width}, got ${heads}.`,
      "Change either.",
    );
    const { dropout = 0, bias = true, batchFirst = false, ...layer } = options;
    checkShare(where, "dropout", dropout);
    this.in_proj_weight = xavierUniform(weightOf([3 * width, width], layer), drawnBy(layer));
    this.in_proj_bias = bias ? weightOf([3 * width], layer) : null;
    this.out_proj = new Linear(width, width, { bias, ...layer });
    if (this.out_proj.bias !== null) zeros(this.out_proj.bias);
    this.heads = heads;
    this.dropout = dropout;
    this.batchFirst = batchFirst;
    this.#generator = options.generator;
    holdParameters(this, ["in_proj_weight"]);
  }

  /**
   * Attends from `query` to `key` and `value`, each [places, batch, width]. With `batchFirst` they are [batch, places, width], and
   * without a batch [places, width].
   *
   * @returns Always a pair `[output, weights]`. The output has the query's shape. The weights are [batch, queries, keys], or
   * [batch, heads, queries, keys] with `averageAttnWeights: false`, or null with `needWeights: false`. Without a batch they have no such axis.
   */
  forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: MultiheadAttentionCall = {},
  ): [output: Tensor, weights: Tensor | null] {
    checkOptions("MultiheadAttention", options, CALL);
    const { needWeights = true, averageAttnWeights = true } = options;
    const width = this.in_proj_weight.shape[1]!;
    const rank = checkSequences([query, key, value], width);
    return tidy((): [Tensor, Tensor | null] => {
      const first = (x: Tensor) => (rank === 2 ? x.unsqueeze(0) : this.batchFirst ? x : x.transpose(0, 1));
      const [q, k, v] = [query, key, value].map((x, part) => this.#project(first(x), part)) as [Tensor, Tensor, Tensor];
      const drop = {
        dropoutP: this.training ? this.dropout : 0,
        ...(this.#generator && { generator: this.#generator }),
      };
      const isPlain = options.isCausal === true && !options.attnMask && !options.keyPaddingMask;
      const form = { ...drop, ...(isPlain ? { isCausal: true } : this.#mask(q, k, options)) };
      const weights = needWeights ? attentionWeights(q, k, form) : null;
      const attended = weights?.matmul(v) ?? scaledDotProductAttention(q, k, v, form);
      const [batch, , queries] = q.shape as [number, number, number];
      const joined = attended.transpose(1, 2).reshape([batch, queries, width]);
      const result = this.out_proj.forward(joined);
      const output = rank === 2 ? result.squeeze(0) : this.batchFirst ? result : result.transpose(0, 1);
      if (weights === null) return [output, null];
      const shown = averageAttnWeights ? weights.mean(1) : weights;
      return [output, rank === 2 ? shown.squeeze(0) : shown];
    });
  }

  /** [batch, heads, places, width / heads] */
  #project(x: Tensor, part: number): Tensor {
    const [batch, places, width] = x.shape as [number, number, number];
    const [from, to] = [part * width, (part + 1) * width];
    const product = x
      .reshape([batch * places, width])
      .matmul(this.in_proj_weight.slice(from, to), { transposeB: true });
    const rows = this.in_proj_bias === null ? product : product.add(this.in_proj_bias.slice(from, to));
    return rows.reshape([batch, places, this.heads, width / this.heads]).transpose(1, 2);
  }

  /** What is added to the scores, for all masks together; nothing without masks. */
  #mask(
    q: Tensor,
    k: Tensor,
    { keyPaddingMask, attnMask, isCausal = false }: MultiheadAttentionCall,
  ): { attnMask?: Tensor } {
    const [batch, heads, queries] = q.shape as [number, number, number];
    const keys = k.shape[2]!;
    const masks: Tensor[] = [];
    if (isCausal) masks.push(added(causalMask(queries, keys, q), q));
    if (attnMask !== undefined) {
      checkMask("MultiheadAttention", "attnMask", attnMask);
      const [rows, size] = [attnMask.shape.length === 3 ? batch * heads : 1, attnMask.size];
      checkFit("attnMask", attnMask, size === rows * queries * keys && attnMask.shape.at(-1) === keys);
      masks.push(
        added(rows === 1 ? attnMask.reshape([queries, keys]) : attnMask.reshape([batch, heads, queries, keys]), q),
      );
    }
    if (keyPaddingMask !== undefined) {
      checkMask("MultiheadAttention", "keyPaddingMask", keyPaddingMask);
      checkFit("keyPaddingMask", keyPaddingMask, keyPaddingMask.size === batch * keys);
      masks.push(added(keyPaddingMask.reshape([batch, 1, 1, keys]), q));
    }
    return masks.length === 0 ? {} : { attnMask: masks.reduce((a, b) => a.add(b)) };
  }

  override describe(): string {
    return `${this.in_proj_weight.shape[1]}, ${this.heads}, dropout=${this.dropout}, batchFirst=${this.batchFirst}`;
  }
}

function causalMask(queries: number, keys: number, { device }: Tensor): Tensor {
  return arange(keys, { device }).gt(arange(queries, { device }).unsqueeze(1));
}

/** -Infinity where a bool mask is true; floats as they are. */
function added(mask: Tensor, { dtype, device }: Tensor): Tensor {
  if (mask.dtype !== "bool") return mask;
  return where(mask, full([], Number.NEGATIVE_INFINITY, { dtype, device }), 0);
}

function checkFit(name: string, mask: Tensor, fits: boolean): void {
  check(fits, "BAD_SHAPE", "MultiheadAttention", () => `${name} must fit queries and keys, got [${mask.shape}].`);
}

/** The number of their axes. @throws OptError BAD_SHAPE */
function checkSequences(sequences: readonly Tensor[], width: number): number {
  const names = ["query", "key", "value"];
  const rank = sequences[0]?.shape?.length ?? 0;
  for (const [i, x] of sequences.entries()) {
    checkTensor("MultiheadAttention", x, names[i]);
    check(
      (x.shape.length === 2 || x.shape.length === 3) && x.shape.length === rank && x.shape.at(-1) === width,
      "BAD_SHAPE",
      "MultiheadAttention",
      () => `${names[i]} must be [places, width] with or without a batch, the width being ${width}, got [${x.shape}].`,
      "All three have the same number of axes.",
    );
  }
  return rank;
}
