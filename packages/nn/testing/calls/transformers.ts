/** Calls of transformer layers, of which PyTorch knows the values, gradients and second ones, with masks. */
import type { Tensor } from "@opt/core";
import type { CallInput, TorchCall } from "@opt/testkit";
import {
  LayerNorm,
  Transformer,
  TransformerDecoder,
  TransformerDecoderLayer,
  TransformerEncoder,
  TransformerEncoderLayer,
} from "../../src/index";
import { layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

const near = { absolute: 1e-4, relative: 1e-4 };

/** Each layer in `count` random configurations, with one of these eps in its norms. */
export function transformerCalls(
  count: number,
  { seed = 15, eps = [1e-5, 1e-2] as readonly number[] } = {},
): TorchCall[] {
  const make = new RandomInputs(seed);
  const calls = Array.from({ length: count }, (_, i) =>
    configuration(make, i, i % 2 === 0 ? "f32" : "f64", eps),
  ).flat();
  // PyTorch's fused attention has no second gradients.
  const plain = calls.map((call) => ({ ...call, code: `torch.backends.cuda.enable_flash_sdp(False);;${call.code}` }));
  return plain.map((call) => (call.name.endsWith("f32") ? { ...call, tolerance: near } : call));
}

function configuration(make: RandomInputs, i: number, dtype: "f32" | "f64", eps: readonly number[]): TorchCall[] {
  const calls: TorchCall[] = [];
  const heads = make.between(1, 2);
  // Norms of one or two numbers are badly conditioned.
  const width = heads === 1 ? make.between(3, 4) : heads * make.between(2, 3);
  const [places, seen, batch] = [make.between(1, 3), make.between(1, 3), make.between(1, 2)];
  const [batchFirst, normFirst, bias, training] = Array.from({ length: 4 }, () => make.flip()) as boolean[];
  const activation = make.random.pick(["relu", "gelu"] as const);
  const [single, causal, padded, masked, normed] = Array.from({ length: 5 }, () => make.random.below(3) === 0);
  const layerNormEps = make.random.pick(eps);
  // What is dropped is drawn by other numbers.
  const dropout = training ? 0 : 0.1;
  const options = { dimFeedforward: 3, dropout, activation, layerNormEps, batchFirst, normFirst, bias } as const;
  const settings = `dim_feedforward=3, dropout=${dropout}, activation="${activation}", layer_norm_eps=${layerNormEps}, batch_first=${python(batchFirst)}, norm_first=${python(normFirst)}, bias=${python(bias)}`;
  const x = (length: number) =>
    make.numbers(single ? [length, width] : batchFirst ? [batch, length, width] : [length, batch, width], dtype);
  // The first place is seen by all: PyTorch gives NaN to who sees none.
  const seesFirst = (shape: readonly number[]): CallInput => ({
    values: Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, j) =>
      j % shape.at(-1)! === 0 ? 0 : make.random.below(2),
    ),
    shape,
    dtype: "bool",
  });
  const padding = (length: number) => seesFirst(single ? [length] : [batch, length]);
  const square = `nn.Transformer.generate_square_subsequent_mask(${places}, dtype=a.dtype)`;
  const of = (given: boolean, name: string) => (given ? name : "None");
  const mask = (name: string) => (causal ? square : of(masked!, name));
  const shared = { dtype, training: training!, second: dtype === "f64" };
  const name = `(${width}, ${heads}, ${settings})${single ? ", no batch" : ""}${causal ? ", causal" : masked ? ", masked" : ""}${padded ? ", padded" : ""}${normed ? ", normed" : ""}`;
  const masks = (attnMask: Tensor | undefined) => (causal || !masked ? {} : { attnMask });

  const encoding = (padding: Tensor | undefined) => ({
    ...(padded && { srcKeyPaddingMask: padding! }),
    isCausal: causal!,
  });
  const encoderInputs = [x(places), padding(places), seesFirst([places, places])];
  const encoderArgs = `src_key_padding_mask=${of(padded!, "b")}, is_causal=${python(causal)}`;
  const encoderLayer = `nn.TransformerEncoderLayer(${width}, ${heads}, ${settings})`;
  calls.push(
    layerCall(make, {
      name: `${i}: TransformerEncoderLayer${name}`,
      torch: encoderLayer,
      make: (place) => new TransformerEncoderLayer(width, heads, { ...options, ...place }),
      inputs: encoderInputs,
      args: `a, src_mask=${mask("c")}, ${encoderArgs}`,
      forward: (call, x, padding, mask) => {
        const { attnMask: srcMask } = masks(mask);
        return call(x!, { ...encoding(padding), ...(srcMask && { srcMask }) });
      },
      ...shared,
    }),
    layerCall(make, {
      name: `${i}: TransformerEncoder${name}`,
      torch: `nn.TransformerEncoder(${encoderLayer}, 2, norm=${normed ? `nn.LayerNorm(${width})` : "None"}, enable_nested_tensor=False)`,
      make: (place) => {
        const layer = new TransformerEncoderLayer(width, heads, { ...options, ...place });
        return new TransformerEncoder(layer, 2, { norm: normed ? new LayerNorm(width, place) : null });
      },
      inputs: encoderInputs,
      args: `a, mask=${mask("c")}, ${encoderArgs}`,
      forward: (call, x, padding, given) => {
        const { attnMask: mask } = masks(given);
        return call(x!, { ...encoding(padding), ...(mask && { mask }) });
      },
      ...shared,
    }),
  );

  const decoding = (mask: Tensor, memoryMask: Tensor, padding: Tensor, memoryPadding: Tensor) => ({
    ...(padded && { tgtKeyPaddingMask: padding, memoryKeyPaddingMask: memoryPadding }),
    ...(masked && { memoryMask }),
    ...(masked && !causal && { tgtMask: mask }),
    tgtIsCausal: causal!,
  });
  const decoderInputs = [
    ...[x(places), x(seen), seesFirst([places, places]), seesFirst([places, seen])],
    ...[padding(places), padding(seen)],
  ];
  const decoderArgs = `tgt_mask=${mask("c")}, memory_mask=${of(masked!, "d")}, tgt_key_padding_mask=${of(padded!, "e")}, memory_key_padding_mask=${of(padded!, "f")}, tgt_is_causal=${python(causal)}`;
  const decoderLayer = `nn.TransformerDecoderLayer(${width}, ${heads}, ${settings})`;
  calls.push(
    layerCall(make, {
      name: `${i}: TransformerDecoderLayer${name}`,
      torch: decoderLayer,
      make: (place) => new TransformerDecoderLayer(width, heads, { ...options, ...place }),
      inputs: decoderInputs,
      args: `a, b, ${decoderArgs}`,
      forward: (call, x, memory, ...rest) => call(x!, memory!, decoding(rest[0]!, rest[1]!, rest[2]!, rest[3]!)),
      ...shared,
    }),
    layerCall(make, {
      name: `${i}: TransformerDecoder${name}`,
      torch: `nn.TransformerDecoder(${decoderLayer}, 2, norm=${normed ? `nn.LayerNorm(${width})` : "None"})`,
      make: (place) => {
        const layer = new TransformerDecoderLayer(width, heads, { ...options, ...place });
        return new TransformerDecoder(layer, 2, { norm: normed ? new LayerNorm(width, place) : null });
      },
      inputs: decoderInputs,
      args: `a, b, ${decoderArgs}`,
      forward: (call, x, memory, ...rest) => call(x!, memory!, decoding(rest[0]!, rest[1]!, rest[2]!, rest[3]!)),
      ...shared,
    }),
    layerCall(make, {
      name: `${i}: Transformer${name}`,
      torch: `nn.Transformer(${width}, ${heads}, 1, 2, ${settings})`,
      make: (place) =>
        new Transformer(width, heads, { numEncoderLayers: 1, numDecoderLayers: 2, ...options, ...place }),
      inputs: decoderInputs,
      args: `b, a, src_key_padding_mask=${of(padded!, "f")}, ${decoderArgs}`,
      forward: (call, x, src, ...rest) =>
        call(src!, x!, {
          ...decoding(rest[0]!, rest[1]!, rest[2]!, rest[3]!),
          ...(padded && { srcKeyPaddingMask: rest[3]! }),
        }),
      ...shared,
    }),
  );
  return calls;
}
