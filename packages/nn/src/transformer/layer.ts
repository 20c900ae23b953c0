/** What encoder and decoder layers share. */
import { check, checkOptions, gelu, relu, show, type Tensor } from "@opt/core";
import { MultiheadAttention, type MultiheadAttentionCall } from "../attention/multihead-attention";
import { Dropout } from "../layers/dropout/dropout";
import { LAYER_OPTIONS, type LayerOptions } from "../layers/layer-options";
import { Linear } from "../layers/linear";
import { LayerNorm } from "../layers/norm/layer-norm";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";

export interface TransformerLayerOptions extends LayerOptions {
  /** The width between the two linear layers. Default 2048. */
  readonly dimFeedforward?: number;
  /** The share that is dropped in training: of attention weights, between the linear layers, and of each part's result. Default 0.1. */
  readonly dropout?: number;
  /** Between the linear layers. Default "relu". */
  readonly activation?: "relu" | "gelu" | ((x: Tensor) => Tensor);
  /** Default 1e-5. */
  readonly layerNormEps?: number;
  /** Inputs are [batch, places, width] instead of [places, batch, width]. Default false, as PyTorch's. */
  readonly batchFirst?: boolean;
  /** Normalizes before each part instead of after it. Default false. */
  readonly normFirst?: boolean;
  /** Of linear layers, attention and norms. Default true. */
  readonly bias?: boolean;
}

export const TRANSFORMER_LAYER_OPTIONS = {
  dimFeedforward: "number",
  dropout: "number",
  activation: "any",
  layerNormEps: "number",
  batchFirst: "boolean",
  normFirst: "boolean",
  bias: "boolean",
  ...LAYER_OPTIONS,
} as const;

type LayerClass = new (width: number, heads: number, options: TransformerLayerOptions) => TransformerLayer;

/** Attention of a sequence to itself, two linear layers, and how parts are joined. Parameters have PyTorch's names. */
export abstract class TransformerLayer extends Module {
  readonly self_attn: MultiheadAttention;
  readonly linear1: Linear;
  readonly dropout: Dropout;
  readonly linear2: Linear;
  readonly norm1: LayerNorm;
  readonly norm2: LayerNorm;
  readonly dropout1: Dropout;
  readonly dropout2: Dropout;
  readonly normFirst: boolean;
  readonly #activation: (x: Tensor) => Tensor;
  readonly #made: readonly [width: number, heads: number, options: TransformerLayerOptions];

  protected constructor(width: number, heads: number, options: TransformerLayerOptions) {
    super();
    const where = new.target.name;
    checkOptions(where, options, TRANSFORMER_LAYER_OPTIONS);
    const { dimFeedforward = 2048, activation = "relu", normFirst = false, bias = true, ...drawn } = options;
    this.#made = [width, heads, options];
    this.#activation = activationOf(where, activation);
    this.normFirst = normFirst;
    this.self_attn = this.attention();
    const { dtype, device, generator } = drawn;
    this.linear1 = new Linear(width, dimFeedforward, { bias, dtype, device, generator });
    this.dropout = this.drop();
    this.linear2 = new Linear(dimFeedforward, width, { bias, dtype, device, generator });
    this.norm1 = this.norm();
    this.norm2 = this.norm();
    this.dropout1 = this.drop();
    this.dropout2 = this.drop();
    holdParameters(this);
  }

  protected attention(): MultiheadAttention {
    const [width, heads, { dropout = 0.1, bias, batchFirst, dtype, device, generator }] = this.#made;
    return new MultiheadAttention(width, heads, { dropout, bias, batchFirst, dtype, device, generator });
  }

  protected drop(): Dropout {
    const [, , { dropout = 0.1, generator }] = this.#made;
    return new Dropout(dropout, { generator });
  }

  protected norm(): LayerNorm {
    const [width, , { layerNormEps: eps, bias, dtype, device }] = this.#made;
    return new LayerNorm(width, { eps, bias, dtype, device });
  }

  /** x and what a part makes of it, normalized before or after. */
  protected join(x: Tensor, norm: LayerNorm, part: (x: Tensor) => Tensor): Tensor {
    return this.normFirst ? x.add(part(norm.forward(x))) : norm.forward(x.add(part(x)));
  }

  protected attend(x: Tensor, masks: MultiheadAttentionCall): Tensor {
    return this.dropout1.forward(this.self_attn.forward(x, x, x, { ...masks, needWeights: false })[0]);
  }

  protected feedForward(x: Tensor, last: Dropout): Tensor {
    const inner = this.dropout.forward(this.#activation(this.linear1.forward(x)));
    return last.forward(this.linear2.forward(inner));
  }

  /** Another layer with the same options and weights. */
  clone(): this {
    const [width, heads, options] = this.#made;
    const { dtype, device } = this.linear1.weight;
    const other = new (this.constructor as LayerClass)(width, heads, { ...options, dtype, device }) as this;
    other.loadStateDict(this.stateDict());
    return other.train(this.training);
  }

  override describe(): string {
    return `normFirst=${this.normFirst}`;
  }
}

function activationOf(where: string, activation: unknown): (x: Tensor) => Tensor {
  const isKnown = activation === "relu" || activation === "gelu" || typeof activation === "function";
  check(
    isKnown,
    "BAD_ARGUMENT",
    where,
    () => `activation must be "relu", "gelu" or a function, got ${show(activation)}.`,
    '"gelu", or (x) => silu(x).',
  );
  if (typeof activation === "function") return activation as (x: Tensor) => Tensor;
  return activation === "relu" ? relu : (x) => gelu(x);
}
