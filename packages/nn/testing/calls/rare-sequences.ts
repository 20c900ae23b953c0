/** Rare arguments of recurrent layers and transformers: several layers with all between them dropped, both directions, uneven lengths, hints. */
import type { Tensor } from "@opt/core";
import type { CallInput, Sweep, TorchCall } from "@opt/testkit";
import * as nn from "../../src/index";
import { layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

const KINDS = { RNN: nn.RNN, LSTM: nn.LSTM, GRU: nn.GRU } as const;

export function rareSequences(count: number): Sweep {
  const make = new RandomInputs(1401);
  const times = (of: (make: RandomInputs, i: number) => TorchCall) =>
    Array.from({ length: count }, (_, i) => of(make, i));
  const layers = (Object.keys(KINDS) as (keyof typeof KINDS)[]).map(
    (kind) => [`${kind}, rare`, times((make, i) => recurrent(make, i, kind))] as const,
  );
  return { ...Object.fromEntries(layers), "TransformerEncoderLayer, rare": times(encoder) };
}

function recurrent(make: RandomInputs, i: number, kind: keyof typeof KINDS): TorchCall {
  const dtype = i % 3 === 2 ? "f32" : "f64";
  const [input, hidden, numLayers] = [make.between(1, 4), make.between(1, 4), make.between(2, 3)];
  const [bias, batchFirst, bidirectional, begun] = [make.flip(), make.flip(), make.flip(), make.flip()];
  // All or nothing is dropped: what is between is drawn by other numbers.
  const dropout = make.random.pick([0, 1, 1]);
  const nonlinearity = make.random.pick(["tanh", "relu"] as const);
  const [length, batch] = [make.between(1, 5), make.between(1, 3)];
  const shape = batchFirst ? [batch, length, input] : [length, batch, input];
  const rows = numLayers * (bidirectional ? 2 : 1);
  const parts = kind === "LSTM" ? 2 : 1;
  const projSize = kind === "LSTM" ? make.between(0, hidden - 1) : 0;
  const widths = [projSize || hidden, hidden].slice(0, parts);
  const states = begun ? widths.map((width) => make.numbers([rows, batch, width], dtype)) : [];
  const lengths = make.flip() ? Array.from({ length: batch }, () => make.between(1, length)) : undefined;
  const ends: CallInput[] = lengths ? [{ values: lengths, shape: [batch], dtype: "i32" }] : [];
  const settings = `${input}, ${hidden}, ${numLayers}, bias=${python(bias)}, batch_first=${python(batchFirst)}, dropout=${dropout}, bidirectional=${python(bidirectional)}${projSize ? `, proj_size=${projSize}` : ""}${kind === "RNN" ? `, nonlinearity="${nonlinearity}"` : ""}`;
  const packed = `nn.utils.rnn.pack_padded_sequence(a, ${python(lengths ?? null)}, ${python(batchFirst)}, enforce_sorted=False)`;
  const unpacked = `nn.utils.rnn.pad_packed_sequence(y[0], ${python(batchFirst)}, total_length=${length})[0]`;
  const first = begun ? (parts === 2 ? ", (b, c)" : ", b") : "";
  const options = {
    numLayers,
    bias,
    batchFirst,
    dropout,
    bidirectional,
    ...(kind === "RNN" && { nonlinearity }),
    ...(projSize && { projSize }),
  };
  return layerCall(make, {
    name: `${i}: ${settings} [${shape}]${begun ? ", begun" : ""}${lengths ? `, lengths ${lengths}` : ""}`,
    torch: `nn.${kind}(${settings})`,
    make: (place) => new KINDS[kind](input, hidden, { ...options, ...place }),
    dtype,
    inputs: [make.numbers(shape, dtype), ...states, ...ends],
    args: `${lengths ? packed : "a"}${first}`,
    results: `[${lengths ? unpacked : "y[0]"}, ${parts === 2 ? "*y[1]" : "y[1]"}]`,
    forward: (call, x, ...rest) => {
      const [h, c] = rest.slice(0, states.length);
      const begin = (parts === 2 && h ? [h, c] : h) as Tensor & [Tensor, Tensor];
      return call(x!, begin, lengths ? { lengths: rest.at(-1)! } : {});
    },
    training: true,
    second: dtype === "f64" && i % 2 === 0,
  });
}

function encoder(make: RandomInputs, i: number): TorchCall {
  const dtype = i % 3 === 2 ? "f32" : "f64";
  const heads = make.between(1, 2);
  const width = heads * make.between(2, 3) * (heads === 1 ? 2 : 1);
  const [batchFirst, normFirst, bias] = [make.flip(), make.flip(), make.flip()];
  const activation = make.random.pick(["relu", "gelu"] as const);
  const dropout = make.random.pick([0, 1]);
  const [places, batch] = [make.between(1, 6), make.between(1, 3)];
  const isCausal = make.flip();
  const eps = make.random.pick([1e-5, 1e-2]);
  const settings = `${width}, ${heads}, dim_feedforward=5, dropout=${dropout}, activation="${activation}", layer_norm_eps=${eps}, batch_first=${python(batchFirst)}, norm_first=${python(normFirst)}, bias=${python(bias)}`;
  const mask = isCausal ? `nn.Transformer.generate_square_subsequent_mask(${places}, dtype=a.dtype)` : "None";
  const call = layerCall(make, {
    name: `${i}: ${settings}${isCausal ? ", causal" : ""}`,
    torch: `nn.TransformerEncoderLayer(${settings})`,
    make: (place) =>
      new nn.TransformerEncoderLayer(width, heads, {
        ...{ dimFeedforward: 5, dropout, activation, layerNormEps: eps, batchFirst, normFirst, bias },
        ...place,
      }),
    dtype,
    inputs: [make.numbers(batchFirst ? [batch, places, width] : [places, batch, width], dtype)],
    args: `a, src_mask=${mask}, is_causal=${python(isCausal)}`,
    forward: (call, x) => call(x!, { isCausal }),
    training: true,
    second: dtype === "f64" && dropout === 0,
  });
  return { ...call, code: `torch.backends.cuda.enable_flash_sdp(False);;${call.code}` };
}
