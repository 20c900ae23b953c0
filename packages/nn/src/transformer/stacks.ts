/** Layers of a transformer on top of each other. */
import { check, checkOptions, checkTensor, show, type Tensor, tidy } from "@opt/core";
import type { Layer } from "../layers/container/sequential";
import { holdParameters } from "../module/held";
import { isModule, Module } from "../module/module";
import { DECODER_CALL, type TransformerDecoderCall, TransformerDecoderLayer } from "./decoder-layer";
import { TransformerEncoderLayer } from "./encoder-layer";

export interface TransformerStackOptions {
  /** Behind the last layer. Default null: none. */
  readonly norm?: Layer | null;
}

export interface TransformerEncoderCall {
  /** Booleans [places, places], true where a place may not see another one; or floats, which are added to the scores. */
  readonly mask?: Tensor;
  /** Booleans [batch, places], true where a place is padding. */
  readonly srcKeyPaddingMask?: Tensor;
  /** Each place sees those up to itself alone. Needs no mask. Default false. */
  readonly isCausal?: boolean;
}

/**
 * `numLayers` copies of an encoder layer, each with weights of its own that begin as the layer's.
 *
 * @throws OptError BAD_ARGUMENT for what is no encoder layer, and a count below 1; forward: BAD_SHAPE, BAD_DTYPE
 * @example
 * const layer = new TransformerEncoderLayer(8, 2, { dimFeedforward: 16, batchFirst: true });
 * const encoder = new TransformerEncoder(layer, 2, { norm: new LayerNorm(8) });
 * const memory = encoder.forward(rand([4, 6, 8])); // [4, 6, 8]
 */
export class TransformerEncoder extends Module {
  readonly layers: readonly TransformerEncoderLayer[];
  readonly norm: Layer | null;

  constructor(layer: TransformerEncoderLayer, numLayers: number, options: TransformerStackOptions = {}) {
    super();
    const where = "TransformerEncoder";
    checkStack(where, numLayers, options);
    const isLayer = layer instanceof TransformerEncoderLayer;
    check(isLayer, "BAD_ARGUMENT", where, () => `needs a TransformerEncoderLayer, got ${show(layer)}.`);
    this.layers = Array.from({ length: numLayers }, () => layer.clone());
    this.norm = options.norm ?? null;
    holdParameters(this);
  }

  forward(src: Tensor, call: TransformerEncoderCall = {}): Tensor {
    const where = "TransformerEncoder";
    checkTensor(where, src, "src");
    checkOptions(where, call, { mask: "any", srcKeyPaddingMask: "any", isCausal: "boolean" });
    const { mask: srcMask, ...rest } = call;
    return tidy(() => {
      const x = this.layers.reduce((x, layer) => layer.forward(x, { srcMask, ...rest }), src);
      return this.norm === null ? x : this.norm.forward(x);
    });
  }
}

/**
 * `numLayers` copies of a decoder layer, each with weights of its own that begin as the layer's.
 *
 * @throws OptError BAD_ARGUMENT for what is no decoder layer, and a count below 1; forward: BAD_SHAPE, BAD_DTYPE
 * @example
 * const layer = new TransformerDecoderLayer(8, 2, { dimFeedforward: 16, batchFirst: true });
 * const y = new TransformerDecoder(layer, 2).forward(rand([4, 5, 8]), rand([4, 6, 8])); // [4, 5, 8]
 */
export class TransformerDecoder extends Module {
  readonly layers: readonly TransformerDecoderLayer[];
  readonly norm: Layer | null;

  constructor(layer: TransformerDecoderLayer, numLayers: number, options: TransformerStackOptions = {}) {
    super();
    const where = "TransformerDecoder";
    checkStack(where, numLayers, options);
    const isLayer = layer instanceof TransformerDecoderLayer;
    check(isLayer, "BAD_ARGUMENT", where, () => `needs a TransformerDecoderLayer, got ${show(layer)}.`);
    this.layers = Array.from({ length: numLayers }, () => layer.clone());
    this.norm = options.norm ?? null;
    holdParameters(this);
  }

  forward(tgt: Tensor, memory: Tensor, call: TransformerDecoderCall = {}): Tensor {
    const where = "TransformerDecoder";
    checkTensor(where, tgt, "tgt");
    checkTensor(where, memory, "memory");
    checkOptions(where, call, DECODER_CALL);
    return tidy(() => {
      const x = this.layers.reduce((x, layer) => layer.forward(x, memory, call), tgt);
      return this.norm === null ? x : this.norm.forward(x);
    });
  }
}

const MOST_LAYERS = 10_000;

function checkStack(where: string, numLayers: number, options: TransformerStackOptions): void {
  checkOptions(where, options, { norm: "any" });
  const isCount = Number.isInteger(numLayers) && numLayers >= 1 && numLayers <= MOST_LAYERS;
  check(
    isCount,
    "BAD_ARGUMENT",
    where,
    () => `numLayers must be an integer in [1, ${MOST_LAYERS}], got ${show(numLayers)}.`,
    "For example 6.",
  );
  const { norm = null } = options;
  const fits = norm === null || isModule(norm);
  check(fits, "BAD_ARGUMENT", where, () => `norm must be a module or null, got ${show(norm)}.`, "new LayerNorm(width)");
}
