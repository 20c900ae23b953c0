import { checkOptions, checkTensor, type Tensor, tidy } from "@opt/core";
import type { MultiheadAttention } from "../attention/multihead-attention";
import type { Dropout } from "../layers/dropout/dropout";
import type { LayerNorm } from "../layers/norm/layer-norm";
import { holdParameters } from "../module/held";
import { TransformerLayer, type TransformerLayerOptions } from "./layer";

/** Masks as `MultiheadAttention` takes them. */
export interface TransformerDecoderCall {
  /** Booleans [places, places], true where a place may not see another one; or floats, which are added to the scores. */
  readonly tgtMask?: Tensor;
  /** [places, places of the memory]. */
  readonly memoryMask?: Tensor;
  /** Booleans [batch, places], true where a place is padding. */
  readonly tgtKeyPaddingMask?: Tensor;
  /** [batch, places of the memory]. */
  readonly memoryKeyPaddingMask?: Tensor;
  /** Each place sees those up to itself alone. Needs no mask. Default false. */
  readonly tgtIsCausal?: boolean;
  /** Place i sees the memory's places up to i alone. Default false. */
  readonly memoryIsCausal?: boolean;
}

export const DECODER_CALL = {
  tgtMask: "any",
  memoryMask: "any",
  tgtKeyPaddingMask: "any",
  memoryKeyPaddingMask: "any",
  tgtIsCausal: "boolean",
  memoryIsCausal: "boolean",
} as const;

/**
 * A layer of a transformer's decoder (Vaswani et al. 2017): attention of the sequence to itself, then to the memory, which an encoder gave, then
 * two linear layers. Each part's result is added to its input and normalized, or with `normFirst` the input is normalized before.
 * Parameters have PyTorch's names.
 *
 * @throws OptError BAD_ARGUMENT for a width that the heads do not divide and other options out of range; forward: BAD_SHAPE, BAD_DTYPE
 * @example
 * const layer = new TransformerDecoderLayer(8, 2, { dimFeedforward: 16, batchFirst: true });
 * const y = layer.forward(rand([4, 5, 8]), rand([4, 6, 8]), { tgtIsCausal: true }); // [4, 5, 8]
 */
export class TransformerDecoderLayer extends TransformerLayer {
  readonly multihead_attn: MultiheadAttention;
  readonly norm3: LayerNorm;
  readonly dropout3: Dropout;

  constructor(width: number, heads: number, options: TransformerLayerOptions = {}) {
    super(width, heads, options);
    this.multihead_attn = this.attention();
    this.norm3 = this.norm();
    this.dropout3 = this.drop();
    holdParameters(this);
  }

  /**
   * Of `tgt` and `memory`, each [places, batch, width]. With `batchFirst` they are [batch, places, width], and without a batch [places, width].
   */
  forward(tgt: Tensor, memory: Tensor, call: TransformerDecoderCall = {}): Tensor {
    const where = "TransformerDecoderLayer";
    checkTensor(where, tgt, "tgt");
    checkTensor(where, memory, "memory");
    checkOptions(where, call, DECODER_CALL);
    const own = { attnMask: call.tgtMask, keyPaddingMask: call.tgtKeyPaddingMask, isCausal: call.tgtIsCausal };
    return tidy(() => {
      const x = this.join(tgt, this.norm1, (x) => this.attend(x, own));
      const y = this.join(x, this.norm2, (x) => this.#attendTo(memory, x, call));
      return this.join(y, this.norm3, (y) => this.feedForward(y, this.dropout3));
    });
  }

  #attendTo(memory: Tensor, x: Tensor, call: TransformerDecoderCall): Tensor {
    const { memoryMask: attnMask, memoryKeyPaddingMask: keyPaddingMask, memoryIsCausal: isCausal } = call;
    const masks = { attnMask, keyPaddingMask, isCausal, needWeights: false };
    return this.dropout2.forward(this.multihead_attn.forward(x, memory, memory, masks)[0]);
  }
}
