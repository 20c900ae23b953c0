import { arange, checkOptions, full, maskedFill, type Tensor, tidy } from "@opt/core";
import { xavierUniform } from "../initializers/initializers";
import { checkExtents } from "../layers/extent";
import { drawnBy, type LayerOptions } from "../layers/layer-options";
import { LayerNorm } from "../layers/norm/layer-norm";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import { DECODER_CALL, type TransformerDecoderCall, TransformerDecoderLayer } from "./decoder-layer";
import { TransformerEncoderLayer } from "./encoder-layer";
import { TRANSFORMER_LAYER_OPTIONS, type TransformerLayerOptions } from "./layer";
import { TransformerDecoder, TransformerEncoder } from "./stacks";

export interface TransformerOptions extends TransformerLayerOptions {
  /** Default 6. */
  readonly numEncoderLayers?: number;
  /** Default 6. */
  readonly numDecoderLayers?: number;
}

/** Masks as `MultiheadAttention` takes them. */
export interface TransformerCall extends TransformerDecoderCall {
  /** Booleans [places of src, places of src], true where a place may not see another one; or floats, which are added to the scores. */
  readonly srcMask?: Tensor;
  /** Booleans [batch, places of src], true where a place is padding. */
  readonly srcKeyPaddingMask?: Tensor;
  /** Each place of src sees those up to itself alone. Needs no mask. Default false. */
  readonly srcIsCausal?: boolean;
}

/**
 * An encoder and a decoder (Vaswani et al. 2017), each with a norm behind its last layer. Matrices begin as Xavier's uniform ones. Embeddings
 * and positions are the program's. Parameters have PyTorch's names.
 *
 * @throws OptError BAD_ARGUMENT for a width that the heads do not divide and other options out of range; forward: BAD_SHAPE, BAD_DTYPE
 * @example
 * const options = { numEncoderLayers: 1, numDecoderLayers: 1, dimFeedforward: 16, batchFirst: true };
 * const y = new Transformer(8, 2, options).forward(rand([4, 6, 8]), rand([4, 5, 8]), { tgtIsCausal: true }); // [4, 5, 8]
 */
export class Transformer extends Module {
  readonly encoder: TransformerEncoder;
  readonly decoder: TransformerDecoder;

  constructor(width = 512, heads = 8, options: TransformerOptions = {}) {
    super();
    const counts = { numEncoderLayers: "number", numDecoderLayers: "number" } as const;
    checkOptions("Transformer", options, { ...counts, ...TRANSFORMER_LAYER_OPTIONS });
    const { numEncoderLayers = 6, numDecoderLayers = 6, ...layer } = options;
    const norm = () => {
      const { layerNormEps: eps = 1e-5, bias = true, dtype, device } = layer;
      return new LayerNorm(width, { eps, bias, dtype, device });
    };
    const encoderLayer = new TransformerEncoderLayer(width, heads, layer);
    const decoderLayer = new TransformerDecoderLayer(width, heads, layer);
    this.encoder = new TransformerEncoder(encoderLayer, numEncoderLayers, { norm: norm() });
    this.decoder = new TransformerDecoder(decoderLayer, numDecoderLayers, { norm: norm() });
    for (const parameter of this.parameters()) if (parameter.shape.length > 1) xavierUniform(parameter, drawnBy(layer));
    holdParameters(this);
  }

  /**
   * From `src` to `tgt`, each [places, batch, width]. With `batchFirst` they are [batch, places, width], and without a batch [places, width].
   * The result has the shape of `tgt`.
   */
  forward(src: Tensor, tgt: Tensor, call: TransformerCall = {}): Tensor {
    const more = { srcMask: "any", srcKeyPaddingMask: "any", srcIsCausal: "boolean" } as const;
    checkOptions("Transformer", call, { ...DECODER_CALL, ...more });
    const { srcMask: mask, srcKeyPaddingMask, srcIsCausal: isCausal, ...decoding } = call;
    return tidy(() =>
      this.decoder.forward(tgt, this.encoder.forward(src, { mask, srcKeyPaddingMask, isCausal }), decoding),
    );
  }

  /**
   * A mask [size, size] of 0 up to each place and -Infinity beyond. The option `isCausal` does without.
   *
   * @throws OptError BAD_ARGUMENT
   * @example
   * const mask = Transformer.generateSquareSubsequentMask(3); // [[0, -Infinity, -Infinity], [0, 0, -Infinity], [0, 0, 0]]
   */
  static generateSquareSubsequentMask(size: number, place: Pick<LayerOptions, "dtype" | "device"> = {}): Tensor {
    checkExtents("generateSquareSubsequentMask", { size });
    return tidy(() => {
      const zeros = full([size, size], 0, place);
      const { device } = zeros;
      const isLater = arange(size, { device }).gt(arange(size, { device }).unsqueeze(1));
      return maskedFill(zeros, isLater, Number.NEGATIVE_INFINITY);
    });
  }
}
