/** Small calls of layers, one list a subject. PyTorch's answers are in `goldens/`. */
import type { CallInput, TorchCall } from "@opt/testkit";
import {
  BatchNorm1d,
  GRU,
  GRUCell,
  InstanceNorm2d,
  type InstanceNormOptions,
  LSTM,
  LSTMCell,
  MultiheadAttention,
  RNN,
  RNNCell,
} from "../index";
import { activationCalls, activationsAtEdges } from "./calls/activations";
import { ctcCalls } from "./calls/ctc";
import { embeddings } from "./calls/embeddings";
import { lossCalls, lossesAtEdges } from "./calls/losses";
import { transformers } from "./calls/transformers";
import { windowCalls } from "./calls/windows";
import { layerCall } from "./layer-call";
import { RandomInputs } from "./random-inputs";

export const STORED: Readonly<Record<string, readonly TorchCall[]>> = {
  recurrent: recurrent(new RandomInputs(51)),
  attention: attention(new RandomInputs(52)),
  norm: norm(new RandomInputs(53)),
  windows: windowCalls(2),
  activations: [...activationCalls(2), ...activationsAtEdges],
  losses: [...lossCalls(2), ...lossesAtEdges, ...ctcCalls(4)],
  transformers: transformers(new RandomInputs(54)),
  embeddings: embeddings(new RandomInputs(55)),
};

function recurrent(make: RandomInputs): TorchCall[] {
  const numbers = (...shape: number[]) => make.numbers(shape, "f64");
  const lengths: CallInput = { values: [2, 4, 1], shape: [3], dtype: "i32" };
  const packed = "nn.utils.rnn.pack_padded_sequence(a, b.long(), enforce_sorted=False)";
  const unpacked = "nn.utils.rnn.pad_packed_sequence(y[0], total_length=4)[0]";
  const [dtype, second, bidirectional] = ["f64", true, true] as const;
  return [
    layerCall(make, {
      name: "LSTM in both directions, from a state",
      torch: "nn.LSTM(3, 2, bidirectional=True)",
      make: (place) => new LSTM(3, 2, { bidirectional, ...place }),
      inputs: [numbers(4, 2, 3), numbers(2, 2, 2), numbers(2, 2, 2)],
      args: "a, (b, c)",
      results: "[y[0], *y[1]]",
      forward: (call, x, h, c) => call(x!, [h!, c!]),
      ...{ dtype, second },
    }),
    layerCall(make, {
      name: "GRU in both directions, from a state",
      torch: "nn.GRU(3, 2, bidirectional=True)",
      make: (place) => new GRU(3, 2, { bidirectional, ...place }),
      inputs: [numbers(4, 2, 3), numbers(2, 2, 2)],
      args: "a, b",
      results: "y",
      forward: (call, x, h) => call(x!, h),
      ...{ dtype, second },
    }),
    layerCall(make, {
      name: "LSTM of two layers in both directions, with lengths, from a state",
      torch: "nn.LSTM(2, 2, 2, bidirectional=True)",
      make: (place) => new LSTM(2, 2, { bidirectional, numLayers: 2, ...place }),
      inputs: [numbers(4, 3, 2), lengths, numbers(4, 3, 2), numbers(4, 3, 2)],
      args: `${packed}, (c, d)`,
      results: `[${unpacked}, *y[1]]`,
      forward: (call, x, lengths, h, c) => call(x!, [h!, c!], { lengths: lengths! }),
      ...{ dtype, second },
    }),
    layerCall(make, {
      name: "GRU in both directions, with lengths",
      torch: "nn.GRU(2, 2, bidirectional=True)",
      make: (place) => new GRU(2, 2, { bidirectional, ...place }),
      inputs: [numbers(4, 3, 2), lengths],
      args: packed,
      results: `[${unpacked}, y[1]]`,
      forward: (call, x, lengths) => call(x!, undefined, { lengths: lengths! }),
      ...{ dtype, second },
    }),
    layerCall(make, {
      name: "RNN with relu",
      torch: 'nn.RNN(2, 3, nonlinearity="relu")',
      make: (place) => new RNN(2, 3, { nonlinearity: "relu", ...place }),
      inputs: [numbers(3, 2, 2)],
      results: "y",
      ...{ dtype, second },
    }),
    layerCall(make, {
      name: "RNNCell",
      torch: "nn.RNNCell(2, 3)",
      make: (place) => new RNNCell(2, 3, place),
      inputs: [numbers(2, 2), numbers(2, 3)],
      args: "a, b",
      forward: (call, x, h) => call(x!, h),
      ...{ dtype, second },
    }),
    layerCall(make, {
      name: "GRUCell",
      torch: "nn.GRUCell(2, 3)",
      make: (place) => new GRUCell(2, 3, place),
      inputs: [numbers(2, 2), numbers(2, 3)],
      args: "a, b",
      forward: (call, x, h) => call(x!, h),
      ...{ dtype, second },
    }),
    layerCall(make, {
      name: "LSTMCell",
      torch: "nn.LSTMCell(2, 3)",
      make: (place) => new LSTMCell(2, 3, place),
      inputs: [numbers(2, 2), numbers(2, 3), numbers(2, 3)],
      args: "a, (b, c)",
      results: "y",
      forward: (call, x, h, c) => call(x!, [h!, c!]),
      ...{ dtype, second },
    }),
  ];
}

function attention(make: RandomInputs): TorchCall[] {
  const padding = { values: [0, 1, 0, 0, 0, 1], shape: [2, 3], dtype: "bool" } as const;
  return [true, false].map((needWeights) =>
    layerCall(make, {
      name: `MultiheadAttention, causal and padded${needWeights ? ", with weights" : ""}`,
      torch: "nn.MultiheadAttention(4, 2, batch_first=True)",
      make: (place) => new MultiheadAttention(4, 2, { batchFirst: true, ...place }),
      dtype: "f64",
      inputs: [make.numbers([2, 3, 4], "f64"), padding],
      args: `a, a, a, key_padding_mask=b, attn_mask=nn.Transformer.generate_square_subsequent_mask(3, dtype=a.dtype), is_causal=True, need_weights=${needWeights ? "True" : "False"}`,
      results: needWeights ? "y" : "y[:1]",
      forward: (call, x, keyPaddingMask) => {
        const [y, weights] = call(x!, x!, x!, { isCausal: true, keyPaddingMask: keyPaddingMask!, needWeights });
        return needWeights ? [y, weights] : y;
      },
    }),
  );
}

function norm(make: RandomInputs): TorchCall[] {
  const buffers = {
    running_mean: (shape: readonly number[]) => make.numbers(shape, "f64", { requiresGrad: false }),
    running_var: (shape: readonly number[]) => make.numbers(shape, "f64", { low: 0.2, requiresGrad: false }),
    num_batches_tracked: (): CallInput => ({ values: [3], shape: [], dtype: "i32" }),
  };
  const rows = [
    ["without running statistics", "track_running_stats=False", { trackRunningStats: false }],
    ["with running statistics", "", {}],
    ["with plain averages", "momentum=None", { momentum: null }],
  ] as const;
  const instance = (name: string, training: boolean, python: string, options: InstanceNormOptions) =>
    layerCall(make, {
      name: `InstanceNorm2d ${name}`,
      torch: `nn.InstanceNorm2d(3, ${python})`,
      make: (place) => new InstanceNorm2d(3, { ...options, ...place }),
      dtype: "f64",
      inputs: [make.numbers([2, 3, 2, 2], "f64")],
      buffers,
      training,
      second: true,
    });
  const batch = rows.flatMap(([name, python, options]) =>
    [true, false].map((training) =>
      layerCall(make, {
        name: `BatchNorm1d ${name}, ${training ? "in training" : "in evaluation"}`,
        torch: `nn.BatchNorm1d(3, ${python})`,
        make: (place) => new BatchNorm1d(3, { ...options, ...place }),
        dtype: "f64",
        inputs: [make.numbers([4, 3], "f64")],
        buffers,
        training,
      }),
    ),
  );
  const tracked = { affine: true, trackRunningStats: true };
  return [
    ...batch,
    instance("as it is", true, "", {}),
    instance("with running statistics, in training", true, "affine=True, track_running_stats=True", tracked),
    instance("with running statistics, in evaluation", false, "affine=True, track_running_stats=True", tracked),
  ];
}
