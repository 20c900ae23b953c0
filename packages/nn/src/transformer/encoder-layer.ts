import { checkOptions, checkTensor, type Tensor, tidy } from "@opt/core";
import { TransformerLayer, type TransformerLayerOptions } from "./layer";

/** Masks as `MultiheadAttention` takes them. */
export interface TransformerEncoderLayerCall {
  /** Booleans [places, places], true where a place may not see another one; or floats, which are added to the scores. */
  readonly srcMask?: Tensor;
  /** Booleans [batch, places], true where a place is padding. */
  readonly srcKeyPaddingMask?: Tensor;
  /** Each place sees those up to itself alone. Needs no mask. Default false. */
  readonly isCausal?: boolean;
}

const CALL = { srcMask: "any", srcKeyPaddingMask: "any", isCausal: "boolean" } as const;

/**
 * A layer of a transformer's encoder (Vaswani et al. 2017): attention of the sequence to itself, then two linear layers. Each part's result is
 * added to its input and normalized, or with `normFirst` the input is normalized before. Parameters have PyTorch's names.
 *
 * @throws OptError BAD_ARGUMENT for a width that the heads do not divide and other options out of range; forward: BAD_SHAPE, BAD_DTYPE
 * @example
 * const layer = new TransformerEncoderLayer(8, 2, { dimFeedforward: 16, batchFirst: true });
 * const y = layer.forward(rand([4, 6, 8]), { isCausal: true }); // [4, 6, 8]
 */
export class TransformerEncoderLayer extends TransformerLayer {
  constructor(width: number, heads: number, options: TransformerLayerOptions = {}) {
    super(width, heads, options);
  }

  /** Of `src` [places, batch, width]. With `batchFirst` it is [batch, places, width], and without a batch [places, width]. */
  forward(src: Tensor, call: TransformerEncoderLayerCall = {}): Tensor {
    checkTensor("TransformerEncoderLayer", src, "src");
    checkOptions("TransformerEncoderLayer", call, CALL);
    const { srcMask, srcKeyPaddingMask, isCausal } = call;
    const masks = { attnMask: srcMask, keyPaddingMask: srcKeyPaddingMask, isCausal };
    return tidy(() => {
      const x = this.join(src, this.norm1, (x) => this.attend(x, masks));
      return this.join(x, this.norm2, (x) => this.feedForward(x, this.dropout2));
    });
  }
}
