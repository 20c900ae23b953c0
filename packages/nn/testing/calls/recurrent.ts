/** Calls of recurrent layers and cells, of which PyTorch knows results, last states, gradients and second ones. */
import type { Tensor } from "@opt/core";
import type { CallInput, TorchCall } from "@opt/testkit";
import { GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell } from "../../src/index";
import { layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

const LAYERS = { RNN, LSTM, GRU } as const;
const CELLS = { RNN: RNNCell, LSTM: LSTMCell, GRU: GRUCell } as const;

/** A layer and a cell in each of `count` random configurations. */
export function recurrentCalls(count: number): TorchCall[] {
  const make = new RandomInputs(14);
  return Array.from({ length: count }, (_, i) => {
    const kind = (["RNN", "LSTM", "GRU"] as const)[i % 3]!;
    const dtype = i % 2 === 0 ? "f32" : "f64";
    return [layer(make, `${i}: ${kind}`, kind, dtype), cell(make, `${i}: ${kind}Cell`, kind, dtype)];
  }).flat();
}

function layer(make: RandomInputs, name: string, kind: keyof typeof LAYERS, dtype: "f32" | "f64"): TorchCall {
  const [input, hidden, numLayers] = [make.between(1, 3), make.between(1, 3), make.between(1, 2)];
  const [bias, batchFirst, single, begun, bidirectional] = Array.from({ length: 5 }, () => make.flip()) as boolean[];
  const nonlinearity = make.random.pick(["tanh", "relu"] as const);
  const [length, batch] = [make.between(1, 4), single ? 1 : make.between(1, 3)];
  const shape = single ? [length, input] : batchFirst ? [batch!, length, input] : [length, batch!, input];
  const rows = numLayers * (bidirectional ? 2 : 1);
  const projSize = kind === "LSTM" && make.flip() ? make.between(0, hidden - 1) : 0;
  const state = (width: number) => make.numbers(single ? [rows, width] : [rows, batch!, width], dtype);
  const states = begun ? [projSize || hidden, ...(kind === "LSTM" ? [hidden] : [])].map(state) : [];
  const lengths = single || make.flip() ? undefined : Array.from({ length: batch! }, () => make.between(1, length));
  const ends: CallInput = { values: lengths ?? [], shape: [batch!], dtype: "i32" };
  const options = {
    numLayers,
    bias,
    batchFirst,
    bidirectional,
    ...(kind === "RNN" && { nonlinearity }),
    ...(projSize && { projSize }),
  };
  const settings = `${numLayers}, bias=${python(bias)}, batch_first=${python(batchFirst)}, bidirectional=${python(bidirectional)}${projSize ? `, proj_size=${projSize}` : ""}`;
  const nonlinear = kind === "RNN" ? `, nonlinearity="${nonlinearity}"` : "";
  const first = begun ? (kind === "LSTM" ? ", (b, c)" : ", b") : "";
  const packed = `nn.utils.rnn.pack_padded_sequence(a, ${python(lengths)}, ${python(batchFirst)}, enforce_sorted=False)`;
  const unpacked = `nn.utils.rnn.pad_packed_sequence(y[0], ${python(batchFirst)}, total_length=${length})[0]`;
  const last = kind === "LSTM" ? "*y[1]" : "y[1]";
  return layerCall(make, {
    name: `${name}(${input}, ${hidden}, ${settings}${nonlinear}) [${shape}]${begun ? ", begun" : ""}${lengths ? `, lengths ${lengths}` : ""}`,
    torch: `nn.${kind}(${input}, ${hidden}, ${settings}${nonlinear})`,
    make: (place) => new LAYERS[kind](input, hidden, { ...options, ...place }),
    dtype,
    inputs: [make.numbers(shape, dtype), ...states, ...(lengths ? [ends] : [])],
    args: `${lengths ? packed : "a"}${first}`,
    results: `[${lengths ? unpacked : "y[0]"}, ${last}]`,
    forward: (call, x, ...rest) => {
      const [h, c] = rest.slice(0, states.length);
      const begin = (kind === "LSTM" && h ? [h, c] : h) as Tensor & [Tensor, Tensor];
      return call(x!, begin, lengths ? { lengths: rest.at(-1)! } : {});
    },
    second: dtype === "f64",
  });
}

function cell(make: RandomInputs, name: string, kind: keyof typeof CELLS, dtype: "f32" | "f64"): TorchCall {
  const [input, hidden, batch] = [make.between(1, 3), make.between(1, 3), make.between(1, 3)];
  const [bias, single, begun] = [make.flip(), make.flip(), make.flip()];
  const nonlinearity = make.random.pick(["tanh", "relu"] as const);
  const options = { bias, ...(kind === "RNN" && { nonlinearity }) };
  const settings = `bias=${python(bias)}${kind === "RNN" ? `, nonlinearity="${nonlinearity}"` : ""}`;
  const rows = (width: number) => make.numbers(single ? [width] : [batch, width], dtype);
  const states = begun ? Array.from({ length: kind === "LSTM" ? 2 : 1 }, () => rows(hidden)) : [];
  return layerCall(make, {
    name: `${name}(${input}, ${hidden}, ${settings})${single ? "" : ` of ${batch}`}${begun ? ", begun" : ""}`,
    torch: `nn.${kind}Cell(${input}, ${hidden}, ${settings})`,
    make: (place) => new CELLS[kind](input, hidden, { ...options, ...place }),
    dtype,
    inputs: [rows(input), ...states],
    args: begun ? (kind === "LSTM" ? "a, (b, c)" : "a, b") : "a",
    results: kind === "LSTM" ? "y" : "[y]",
    forward: (call, x, h, c) => call(x!, (kind === "LSTM" && h ? [h, c] : h) as Tensor & [Tensor, Tensor]),
    second: dtype === "f64",
  });
}
