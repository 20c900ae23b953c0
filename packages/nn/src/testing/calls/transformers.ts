/** Calls of transformer layers whose answers are stored. */
import type { TorchCall } from "@opt/testkit";
import { Transformer, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer } from "../../index";
import { layerCall } from "../layer-call";
import type { RandomInputs } from "../random-inputs";

export function transformers(make: RandomInputs): TorchCall[] {
  const x = (places: number) => make.numbers([2, places, 4], "f64");
  const padding = { values: [0, 0, 1, 0, 0, 0], shape: [2, 3], dtype: "bool" } as const;
  const causal = "nn.Transformer.generate_square_subsequent_mask(2, dtype=a.dtype)";
  const options = { dimFeedforward: 3, batchFirst: true } as const;
  const settings = "dim_feedforward=3, batch_first=True";
  // Dropout is drawn by other numbers than PyTorch's.
  const shared = { dtype: "f64", training: false } as const;
  return [
    layerCall(make, {
      name: "TransformerEncoderLayer, padded",
      torch: `nn.TransformerEncoderLayer(4, 2, ${settings})`,
      make: (place) => new TransformerEncoderLayer(4, 2, { ...options, ...place }),
      inputs: [x(3), padding],
      args: "a, src_key_padding_mask=b",
      forward: (call, x, srcKeyPaddingMask) => call(x!, { srcKeyPaddingMask: srcKeyPaddingMask! }),
      ...shared,
    }),
    layerCall(make, {
      name: "TransformerEncoder of layers that normalize first, causal",
      torch: `nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, ${settings}, norm_first=True, activation="gelu"), 2, enable_nested_tensor=False)`,
      make: (place) => {
        const layer = { ...options, ...place, normFirst: true, activation: "gelu" } as const;
        return new TransformerEncoder(new TransformerEncoderLayer(4, 2, layer), 2);
      },
      inputs: [x(2)],
      args: `a, mask=${causal}, is_causal=True`,
      forward: (call, x) => call(x!, { isCausal: true }),
      ...shared,
    }),
    layerCall(make, {
      name: "TransformerDecoderLayer, causal, with a padded memory",
      torch: `nn.TransformerDecoderLayer(4, 2, ${settings}, bias=False)`,
      make: (place) => new TransformerDecoderLayer(4, 2, { ...options, bias: false, ...place }),
      inputs: [x(2), x(3), padding],
      args: `a, b, tgt_mask=${causal}, memory_key_padding_mask=c, tgt_is_causal=True`,
      forward: (call, x, memory, memoryKeyPaddingMask) =>
        call(x!, memory!, { tgtIsCausal: true, memoryKeyPaddingMask: memoryKeyPaddingMask! }),
      ...shared,
    }),
    layerCall(make, {
      name: "Transformer",
      torch: `nn.Transformer(4, 2, 1, 1, ${settings}, layer_norm_eps=0.01)`,
      make: (place) =>
        new Transformer(4, 2, { numEncoderLayers: 1, numDecoderLayers: 1, layerNormEps: 0.01, ...options, ...place }),
      inputs: [x(2), x(3), padding],
      args: `b, a, tgt_mask=${causal}, src_key_padding_mask=c, memory_key_padding_mask=c, tgt_is_causal=True`,
      forward: (call, tgt, src, padding) =>
        call(src!, tgt!, { tgtIsCausal: true, srcKeyPaddingMask: padding!, memoryKeyPaddingMask: padding! }),
      ...shared,
    }),
  ];
}
