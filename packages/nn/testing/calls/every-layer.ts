/** Calls of every layer with random options, of batches of none, one and more, of which PyTorch knows values, gradients and second ones. */
import { type Device, type DType, ones } from "@opt/core";
import type { CallInput, TorchCall } from "@opt/testkit";
import * as nn from "../../src/index";
import { type LayerCall, layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

/** A layer's call without the dtype, which all share. */
type Drawn = Omit<LayerCall<nn.Module>, "dtype" | "name"> & { readonly name?: string };

interface Draw {
  readonly make: RandomInputs;
  /** Numbers in -2 .. 2 with a gradient. */
  readonly x: (...shape: readonly number[]) => CallInput;
  /** Extents of the batch, often none or one; without an axis where `single`. */
  readonly batch: number;
  readonly training: boolean;
}

const list = (values: readonly number[]) => (values.length === 1 ? String(values[0]) : `(${values.join(", ")})`);
const times = <T>(count: number, of: (i: number) => T) => Array.from({ length: count }, (_, i) => of(i));

/** How many kinds of layers there are. */
export const LAYER_KINDS = () => Object.keys(LAYERS).length;

/** `count` calls, the layers in turn. The same seed makes the same calls. */
export function everyLayerCalls(count: number, seed: number): TorchCall[] {
  const make = new RandomInputs(seed);
  const kinds = Object.values(LAYERS);
  return times(count, (i) => {
    const draw = kinds[i % kinds.length]!;
    const dtype = make.random.below(4) === 0 ? "f32" : "f64";
    const x = (...shape: readonly number[]) => make.numbers(shape, dtype);
    const batch = make.random.pick([0, 1, 1, 2, 3]);
    const training = make.flip();
    const drawn = draw({ make, x, batch, training });
    const call = layerCall(make, {
      training,
      second: dtype === "f64",
      ...drawn,
      dtype,
      name: `${i}: ${drawn.torch} ${shown(drawn)}`,
    } as LayerCall<nn.Module>);
    // PyTorch's fused attention has no second gradients.
    return {
      ...call,
      code: `torch.backends.cuda.enable_flash_sdp(False);;${call.code}`,
      ...(dtype === "f32" && { tolerance: { absolute: 1e-4, relative: 1e-3 } }),
    };
  });
}

const shown = ({ inputs, name = "", training, args = "" }: Drawn) =>
  `${inputs.map(({ shape }) => `[${shape}]`).join(" ")} ${args} ${name}${training === false ? " in evaluation" : ""}`;

/** A layer of one tensor of any shape. */
const plain =
  (of: (make: RandomInputs, rank: number) => [torch: string, make: () => nn.Module]) =>
  ({ make, x, batch }: Draw): Drawn => {
    const shape = [batch, ...times(make.between(0, 3), () => make.between(1, 3))];
    const [torch, made] = of(make, shape.length);
    return { torch, make: made, inputs: [x(...shape)] };
  };

const fixed = (Layer: new () => nn.Module) => plain(() => [`nn.${Layer.name}()`, () => new Layer()]);

const dropout =
  (Layer: new (p: number) => nn.Module, axes: number) =>
  (draw: Draw): Drawn => {
    const { make, x, batch, training } = draw;
    const p = training ? 0 : make.random.pick([0, 0.5, 1]);
    const shape = axes === 0 ? [batch, 3] : [batch, ...times(axes + 1, () => make.between(1, 3))];
    return { torch: `nn.${Layer.name}(${p})`, make: () => new Layer(p), inputs: [x(...shape)] };
  };

/** Channels and extents, with or without the batch. */
function image({ make, x, batch }: Draw, channels: number, axes: number, least: number): CallInput {
  const extents = times(axes, () => make.between(least, axes === 3 ? 4 : 6));
  return make.random.below(4) === 0 ? x(channels, ...extents) : x(batch, channels, ...extents);
}

/** Convolutions of an empty batch have second gradients of zeros here, and none in PyTorch, which leaves the kernel out. */
const secondOf = ({ batch }: Draw) => (batch === 0 ? { second: false } : {});

const convolution =
  (axes: 1 | 2 | 3) =>
  (draw: Draw): Drawn => {
    const { make } = draw;
    const groups = make.between(1, 2);
    const [inside, out] = [groups * make.between(1, 2), groups * make.between(1, 2)];
    const kernel = times(axes, () => make.between(1, 3));
    const dilation = times(axes, () => make.between(1, axes === 3 ? 1 : 2));
    const isSame = make.random.below(3) === 0;
    const stride = times(axes, () => (isSame ? 1 : make.between(1, 3)));
    const padding = isSame ? ("same" as const) : times(axes, () => make.between(0, 2));
    const paddingMode = make.random.pick(["zeros", "zeros", "reflect", "replicate", "circular"] as const);
    const bias = make.flip();
    // biome-ignore lint/suspicious/noExplicitAny: lists of as many numbers as there are axes
    const Layer = [nn.Conv1d, nn.Conv2d, nn.Conv3d][axes - 1] as any;
    return {
      torch: `nn.Conv${axes}d(${inside}, ${out}, ${list(kernel)}, stride=${list(stride)}, padding=${padding === "same" ? '"same"' : list(padding)}, dilation=${list(dilation)}, groups=${groups}, bias=${python(bias)}, padding_mode="${paddingMode}")`,
      make: (place) =>
        new Layer(inside, out, kernel, { stride, padding, dilation, groups, bias, paddingMode, ...place }),
      inputs: [image(draw, inside, axes, axes === 3 ? 3 : 5)],
      ...secondOf(draw),
    };
  };

const transposed =
  (axes: 1 | 2 | 3) =>
  (draw: Draw): Drawn => {
    const { make } = draw;
    const groups = make.between(1, 2);
    const [inside, out] = [groups * make.between(1, 2), groups * make.between(1, 2)];
    const [kernel, stride, padding, dilation] = [
      make.between(1, 3),
      make.between(1, 3),
      make.between(0, 1),
      make.between(1, 2),
    ];
    const outputPadding = make.between(0, Math.max(stride, dilation) - 1);
    const bias = make.flip();
    const Layer = [nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d][axes - 1]!;
    return {
      torch: `nn.ConvTranspose${axes}d(${inside}, ${out}, ${kernel}, stride=${stride}, padding=${padding}, output_padding=${outputPadding}, groups=${groups}, bias=${python(bias)}, dilation=${dilation})`,
      make: (place) =>
        new Layer(inside, out, kernel, { stride, padding, outputPadding, groups, bias, dilation, ...place }),
      inputs: [image(draw, inside, axes, 3)],
      ...secondOf(draw),
    };
  };

const pool =
  (kind: "Max" | "Avg", axes: 1 | 2 | 3) =>
  (draw: Draw): Drawn => {
    const { make } = draw;
    const kernel = make.between(1, 3);
    const [stride, padding, ceilMode] = [make.between(1, 3), make.between(0, Math.floor(kernel / 2)), make.flip()];
    const dilation = make.between(1, 2);
    const countIncludePad = make.flip();
    const shared = { stride, padding, ceilMode };
    const text = `${kernel}, stride=${stride}, padding=${padding}, ceil_mode=${python(ceilMode)}`;
    const isMax = kind === "Max";
    const divisorOverride = axes === 1 ? null : make.random.pick([null, 3]);
    const average = { ...shared, countIncludePad, ...(axes > 1 && { divisorOverride }) };
    const more = isMax
      ? `dilation=${dilation}`
      : `count_include_pad=${python(countIncludePad)}${divisorOverride === null ? "" : ", divisor_override=3"}`;
    return {
      torch: `nn.${kind}Pool${axes}d(${text}, ${more})`,
      make: () => {
        if (isMax) return new [nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d][axes - 1]!(kernel, { ...shared, dilation });
        return new [nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d][axes - 1]!(kernel, average);
      },
      inputs: [image(draw, 2, axes, axes === 3 ? 4 : 5)],
    };
  };

const adaptive =
  (kind: "Max" | "Avg", axes: 1 | 2 | 3) =>
  (draw: Draw): Drawn => {
    const size = draw.make.between(1, 4);
    const averages = [nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d];
    const largest = [nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d];
    return {
      torch: `nn.Adaptive${kind}Pool${axes}d(${size})`,
      make: () => new (kind === "Max" ? largest : averages)[axes - 1]!(size),
      inputs: [image(draw, 2, axes, 2)],
    };
  };

const { BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d } = nn;
const NORMS = { BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d } as const;

const channelNorm =
  (kind: keyof typeof NORMS) =>
  (draw: Draw): Drawn => {
    const { make, x } = draw;
    const channels = make.between(1, 3);
    const extents = !kind.endsWith("1d")
      ? times(Number(kind.at(-2)), () => make.between(1, 4))
      : make.flip() && kind === "BatchNorm1d"
        ? []
        : [make.between(1, 5)];
    const [momentum, eps] = [make.random.pick([0.1, 0.5, null]), make.random.pick([1e-5, 0.1])];
    const [affine, trackRunningStats] = [make.flip(), make.flip()];
    const settings = `${channels}, eps=${eps}, momentum=${python(momentum)}, affine=${python(affine)}, track_running_stats=${python(trackRunningStats)}`;
    const { dtype } = x(1);
    // Without samples PyTorch's InstanceNorm fails, or has statistics of NaN.
    const isUsable = kind.startsWith("Batch") || !(affine || trackRunningStats);
    const batch = draw.batch === 0 && !isUsable ? 1 : draw.batch;
    return {
      torch: `nn.${kind}(${settings})`,
      make: (place) => new NORMS[kind](channels, { eps, momentum, affine, trackRunningStats, ...place }),
      inputs: [x(batch, channels, ...extents)],
      buffers: {
        running_mean: (shape) => make.numbers(shape, dtype, { requiresGrad: false }),
        running_var: (shape) => make.numbers(shape, dtype, { low: 0.2, requiresGrad: false }),
        num_batches_tracked: () => ({ values: [3], shape: [], dtype: "i32" }),
      },
      training: draw.training,
    };
  };

const recurrent =
  (kind: "RNN" | "LSTM" | "GRU") =>
  ({ make, x, batch, training }: Draw): Drawn => {
    const [input, hidden, numLayers, length] = [
      make.between(1, 3),
      make.between(1, 3),
      make.between(1, 2),
      make.between(1, 3),
    ];
    const [bias, batchFirst, bidirectional] = [make.flip(), make.flip(), make.flip()];
    const dropout = training || numLayers === 1 ? 0 : 0.5;
    const settings = `${input}, ${hidden}, ${numLayers}, bias=${python(bias)}, batch_first=${python(batchFirst)}, bidirectional=${python(bidirectional)}, dropout=${dropout}`;
    return {
      torch: `nn.${kind}(${settings})`,
      make: (place) =>
        new ({ RNN: nn.RNN, LSTM: nn.LSTM, GRU: nn.GRU })[kind](input, hidden, {
          numLayers,
          bias,
          batchFirst,
          bidirectional,
          dropout,
          ...place,
        }),
      inputs: [
        make.random.below(4) === 0 ? x(length, input) : batchFirst ? x(batch, length, input) : x(length, batch, input),
      ],
      results: `[y[0], ${kind === "LSTM" ? "*y[1]" : "y[1]"}]`,
    };
  };

const cell =
  (kind: "RNN" | "LSTM" | "GRU") =>
  ({ make, x, batch }: Draw): Drawn => {
    const [input, hidden, bias] = [make.between(1, 3), make.between(1, 3), make.flip()];
    const Cell = { RNN: nn.RNNCell, LSTM: nn.LSTMCell, GRU: nn.GRUCell }[kind];
    return {
      torch: `nn.${kind}Cell(${input}, ${hidden}, bias=${python(bias)})`,
      make: (place) => new Cell(input, hidden, { bias, ...place }),
      inputs: [make.random.below(4) === 0 ? x(input) : x(batch, input)],
      results: kind === "LSTM" ? "y" : "[y]",
    };
  };

function multihead({ make, x, batch }: Draw): Drawn {
  const heads = make.between(1, 2);
  const [size, queries, keys] = [heads * make.between(1, 3), make.between(1, 3), make.between(1, 3)];
  const [batchFirst, bias, needWeights] = [make.flip(), make.flip(), make.flip()];
  const of = (length: number) => (batchFirst ? x(batch, length, size) : x(length, batch, size));
  return {
    torch: `nn.MultiheadAttention(${size}, ${heads}, bias=${python(bias)}, batch_first=${python(batchFirst)})`,
    make: (place) => new nn.MultiheadAttention(size, heads, { bias, batchFirst, ...place }),
    inputs: [of(queries), of(keys), of(keys)],
    args: `a, b, c, need_weights=${python(needWeights)}`,
    results: needWeights ? "y" : "y[:1]",
    forward: (call, ...given) => {
      const [y, weights] = (call as (...inputs: unknown[]) => unknown[])(...given, { needWeights });
      return needWeights ? [y, weights] : y;
    },
  };
}

/** Attention to a memory in decoders. Norms of one or two numbers are badly conditioned. */
const transformer =
  (kind: "Encoder" | "Decoder") =>
  ({ make, x, batch, training }: Draw): Drawn => {
    const heads = make.between(1, 2);
    const width = heads === 1 ? make.between(3, 4) : 4;
    const [places, seen] = [make.between(1, 3), make.between(1, 3)];
    const [batchFirst, normFirst, bias] = [make.flip(), make.flip(), make.flip()];
    const activation = make.random.pick(["relu", "gelu"] as const);
    const dropout = training ? 0 : 0.1;
    const of = (length: number) => (batchFirst ? x(batch, length, width) : x(length, batch, width));
    const Layer = kind === "Encoder" ? nn.TransformerEncoderLayer : nn.TransformerDecoderLayer;
    return {
      torch: `nn.Transformer${kind}Layer(${width}, ${heads}, dim_feedforward=3, dropout=${dropout}, activation="${activation}", batch_first=${python(batchFirst)}, norm_first=${python(normFirst)}, bias=${python(bias)})`,
      make: (place) =>
        new Layer(width, heads, { dimFeedforward: 3, dropout, activation, batchFirst, normFirst, bias, ...place }),
      inputs: kind === "Encoder" ? [of(places)] : [of(places), of(seen)],
      ...(kind === "Decoder" && {
        args: "a, b",
        forward: (call, ...given) => (call as (...inputs: unknown[]) => unknown)(...given),
      }),
    };
  };

const loss =
  (of: (draw: Draw) => Omit<Drawn, "torch"> & { readonly torch: string }) =>
  (draw: Draw): Drawn => ({ args: "a, b", forward: (call, ...given) => callOf(call)(...given), ...of(draw) });

const callOf = (call: unknown) => call as (...inputs: unknown[]) => unknown;

const { L1Loss, MSELoss, HuberLoss, SmoothL1Loss, SoftMarginLoss, HingeEmbeddingLoss } = nn;
const PAIR_LOSSES = { L1Loss, MSELoss, HuberLoss, SmoothL1Loss, SoftMarginLoss, HingeEmbeddingLoss } as const;

/** Losses of two tensors of one shape. */
const pairLoss = (kind: keyof typeof PAIR_LOSSES) =>
  loss(({ make, x, batch }) => {
    const reduction = make.random.pick(["mean", "sum", "none"] as const);
    const shape = [Math.max(batch, 1), make.between(1, 3)];
    const signs = make.whole(shape, 2);
    const target: CallInput = {
      ...signs,
      dtype: x(1).dtype,
      values: Array.from(signs.values, (value) => 2 * value - 1),
    };
    return {
      torch: `nn.${kind}(reduction="${reduction}")`,
      make: () => new PAIR_LOSSES[kind]({ reduction }),
      inputs: [x(...shape), kind === "SoftMarginLoss" || kind === "HingeEmbeddingLoss" ? target : x(...shape)],
    };
  });

const LOSSES: Readonly<Record<string, (draw: Draw) => Drawn>> = {
  L1Loss: pairLoss("L1Loss"),
  MSELoss: pairLoss("MSELoss"),
  HuberLoss: pairLoss("HuberLoss"),
  SmoothL1Loss: pairLoss("SmoothL1Loss"),
  SoftMarginLoss: pairLoss("SoftMarginLoss"),
  HingeEmbeddingLoss: pairLoss("HingeEmbeddingLoss"),
  CrossEntropyLoss: loss(({ make, x, batch }) => {
    const classes = make.between(2, 4);
    const [weighted, labelSmoothing] = [make.flip(), make.random.pick([0, 0.1])];
    return {
      torch: `nn.CrossEntropyLoss(${weighted ? `weight=torch.ones(${classes}), ` : ""}label_smoothing=${labelSmoothing})`,
      make: (place) =>
        new nn.CrossEntropyLoss({ axis: 1, labelSmoothing, ...(weighted && { weight: factors(classes, place) }) }),
      inputs: [x(Math.max(batch, 1), classes, 2), make.whole([Math.max(batch, 1), 2], classes)],
      args: "a, b.long()",
      buffers: { weight: (shape) => make.numbers(shape, x(1).dtype, { low: 0.5, requiresGrad: false }) },
    };
  }),
  BCEWithLogitsLoss: loss(({ make, x, batch }) => {
    const [width, weighted] = [make.between(1, 3), make.flip()];
    const shape = [Math.max(batch, 1), width];
    const python = `${weighted ? `weight=torch.ones(${width}), ` : ""}pos_weight=torch.ones(${width})`;
    return {
      torch: `nn.BCEWithLogitsLoss(${python})`,
      make: (place) =>
        new nn.BCEWithLogitsLoss({
          ...(weighted && { weight: factors(width, place) }),
          posWeight: factors(width, place),
        }),
      inputs: [x(...shape), make.numbers(shape, x(1).dtype, { low: 0, high: 1, requiresGrad: false })],
      buffers: { weight: (shape) => make.numbers(shape, x(1).dtype, { low: 0.5, requiresGrad: false }) },
    };
  }),
  MultiLabelSoftMarginLoss: loss(({ make, x, batch }) => {
    const shape = [Math.max(batch, 1), make.between(1, 3)];
    return {
      torch: `nn.MultiLabelSoftMarginLoss(weight=torch.ones(${shape[1]}))`,
      make: (place) => new nn.MultiLabelSoftMarginLoss({ weight: factors(shape[1]!, place) }),
      inputs: [x(...shape), { ...make.whole(shape, 2), dtype: x(1).dtype }],
      buffers: { weight: (shape) => make.numbers(shape, x(1).dtype, { low: 0.5, requiresGrad: false }) },
    };
  }),
  MultiLabelMarginLoss: loss(({ make, x, batch }) => {
    const shape = [...(make.flip() ? [Math.max(batch, 1)] : []), make.between(1, 4)];
    return {
      torch: "nn.MultiLabelMarginLoss()",
      make: () => new nn.MultiLabelMarginLoss(),
      inputs: [x(...shape), make.whole(shape, shape.at(-1)!, -1, 0.3)],
      args: "a, b.long()",
      second: false, // of which PyTorch has none
    };
  }),
};

const factors = (count: number, place: { readonly dtype: DType; readonly device?: Device }) => ones([count], place);

/** How layers of two inputs are called. */
const ofPairs = {
  args: "a, b",
  forward: (call: unknown, ...given: readonly unknown[]) => callOf(call)(...given),
} as const;

/** Windows that fit into five rows. */
function folding(make: RandomInputs) {
  const kernel = [make.between(1, 3), make.between(1, 2)] as const;
  const options = { stride: make.between(1, 2), padding: make.between(0, 1), dilation: make.between(1, 2) };
  const text = `dilation=${options.dilation}, padding=${options.padding}, stride=${options.stride}`;
  return { kernel, options, text };
}

const LAYERS: Readonly<Record<string, (draw: Draw) => Drawn>> = {
  ...LOSSES,
  ReLU: fixed(nn.ReLU),
  Tanh: fixed(nn.Tanh),
  Sigmoid: fixed(nn.Sigmoid),
  SiLU: fixed(nn.SiLU),
  SELU: fixed(nn.SELU),
  ReLU6: fixed(nn.ReLU6),
  Hardswish: fixed(nn.Hardswish),
  Mish: fixed(nn.Mish),
  LogSigmoid: fixed(nn.LogSigmoid),
  Identity: fixed(nn.Identity),
  GELU: plain((make) => {
    const approximate = make.random.pick(["none", "tanh"] as const);
    return [`nn.GELU("${approximate}")`, () => new nn.GELU({ approximate })];
  }),
  LeakyReLU: plain((make) => {
    const slope = make.random.pick([0, 0.01, 0.5, 1, 2, -0.5]);
    return [`nn.LeakyReLU(${slope})`, () => new nn.LeakyReLU(slope)];
  }),
  Softplus: plain((make) => {
    const [beta, threshold] = [make.random.pick([0.5, 1, 3]), make.random.pick([1, 20])];
    return [`nn.Softplus(${beta}, ${threshold})`, () => new nn.Softplus({ beta, threshold })];
  }),
  ELU: plain((make) => {
    const alpha = make.random.pick([0, 0.5, 1, 2, -1]);
    return [`nn.ELU(${alpha})`, () => new nn.ELU(alpha)];
  }),
  Hardtanh: plain((make) => {
    const [low, high] = [make.random.pick([-2, -1, 0]), make.random.pick([0.5, 1])];
    return [`nn.Hardtanh(${low}, ${high})`, () => new nn.Hardtanh(low, high)];
  }),
  Softmax: plain((make, rank) => {
    const axis = make.between(-rank, rank - 1);
    return [`nn.Softmax(${axis})`, () => new nn.Softmax(axis)];
  }),
  LogSoftmax: plain((make, rank) => {
    const axis = make.between(-rank, rank - 1);
    return [`nn.LogSoftmax(${axis})`, () => new nn.LogSoftmax(axis)];
  }),
  GLU: ({ make, x, batch }) => {
    const shape = [batch, ...times(make.between(1, 2), () => 2 * make.between(1, 2))];
    const axis = make.between(1, shape.length - 1);
    return { torch: `nn.GLU(${axis})`, make: () => new nn.GLU(axis), inputs: [x(...shape)] };
  },
  PReLU: ({ make, x, batch }) => {
    const channels = make.between(1, 3);
    const count = make.flip() ? 1 : channels;
    return {
      torch: `nn.PReLU(${count})`,
      make: (place) => new nn.PReLU(count, place),
      inputs: [x(batch, channels, ...times(make.between(0, 2), () => make.between(1, 3)))],
    };
  },
  Linear: ({ make, x, batch }) => {
    const [inside, out, bias] = [make.between(1, 4), make.between(1, 4), make.flip()];
    const leading = make.random.below(4) === 0 ? [] : [batch, ...times(make.between(0, 2), () => make.between(1, 3))];
    return {
      torch: `nn.Linear(${inside}, ${out}, bias=${python(bias)})`,
      make: (place) => new nn.Linear(inside, out, { bias, ...place }),
      inputs: [x(...leading, inside)],
    };
  },
  "Linear with weightNorm": ({ make, x, batch }) => {
    const [inside, out, axis] = [make.between(1, 4), make.between(1, 4), make.random.pick([0, 1, null])];
    return {
      torch: `torch.nn.utils.parametrizations.weight_norm(nn.Linear(${inside}, ${out}), dim=${python(axis)})`,
      make: (place) => nn.weightNorm(new nn.Linear(inside, out, place), "weight", { axis }),
      inputs: [x(batch, inside)],
      second: false, // PyTorch's kernel takes the length for a constant there
    };
  },
  "Conv2d with spectralNorm": (draw) => {
    const { make, x } = draw;
    const [inside, out, kernel] = [make.between(1, 2), make.between(1, 3), make.between(1, 2)];
    const [axis, nPowerIterations] = [make.between(0, 1), make.between(1, 2)];
    return {
      torch: `torch.nn.utils.parametrizations.spectral_norm(nn.Conv2d(${inside}, ${out}, ${kernel}), n_power_iterations=${nPowerIterations}, dim=${axis})`,
      make: (place) => nn.spectralNorm(new nn.Conv2d(inside, out, kernel, place), "weight", { axis, nPowerIterations }),
      inputs: [x(2, inside, 3, 3)],
      training: false, // else each of several forwards has other vectors
      buffers: {
        _u: (shape) => make.numbers(shape, x(1).dtype, { low: 0.2, high: 1, requiresGrad: false }),
        _v: (shape) => make.numbers(shape, x(1).dtype, { low: 0.2, high: 1, requiresGrad: false }),
      },
    };
  },
  Bilinear: ({ make, x, batch }) => {
    const [a, b, out, bias] = [make.between(1, 3), make.between(1, 3), make.between(1, 3), make.flip()];
    const leading = [batch, ...times(make.between(0, 1), () => make.between(1, 3))];
    return {
      torch: `nn.Bilinear(${a}, ${b}, ${out}, bias=${python(bias)})`,
      make: (place) => new nn.Bilinear(a, b, out, { bias, ...place }),
      inputs: [x(...leading, a), x(...leading, b)],
      ...ofPairs,
    };
  },
  CosineSimilarity: ({ make, x, batch }) => {
    const [axis, eps] = [make.between(0, 1), make.random.pick([1e-8, 0.5])];
    const shape = [Math.max(batch, 1), make.between(1, 3)];
    return {
      torch: `nn.CosineSimilarity(dim=${axis}, eps=${eps})`,
      make: () => new nn.CosineSimilarity({ axis, eps }),
      inputs: [x(...shape), x(...shape)],
      ...ofPairs,
    };
  },
  PairwiseDistance: ({ make, x, batch }) => {
    const [p, keepDim, shape] = [make.random.pick([1, 2, 3]), make.flip(), [batch, make.between(1, 3)]];
    return {
      torch: `nn.PairwiseDistance(p=${p}, eps=0.001, keepdim=${python(keepDim)})`,
      make: () => new nn.PairwiseDistance({ p, eps: 0.001, keepDim }),
      inputs: [x(...shape), x(...shape)],
      ...ofPairs,
    };
  },
  Unfold: (draw) => {
    const { text, options, kernel } = folding(draw.make);
    return {
      torch: `nn.Unfold(${list(kernel)}, ${text})`,
      make: () => new nn.Unfold(kernel, options),
      inputs: [image(draw, 2, 2, 5)],
      ...secondOf(draw),
    };
  },
  Fold: (draw) => {
    const { make, x, batch } = draw;
    const { text, options, kernel } = folding(make);
    const size = [make.between(5, 6), make.between(5, 6)] as const;
    const { stride, padding, dilation } = options;
    const windows = size.map((n, i) => Math.floor((n + 2 * padding - dilation * (kernel[i]! - 1) - 1) / stride) + 1);
    const shape = [2 * kernel[0] * kernel[1], windows[0]! * windows[1]!];
    return {
      torch: `nn.Fold(${list(size)}, ${list(kernel)}, ${text})`,
      make: () => new nn.Fold(size, kernel, options),
      inputs: [make.flip() ? x(...shape) : x(batch, ...shape)],
      ...secondOf(draw),
    };
  },
  Flatten: ({ make, x, batch }) => {
    const shape = [batch, ...times(make.between(1, 3), () => make.between(1, 3))];
    return { torch: "nn.Flatten()", make: () => new nn.Flatten(), inputs: [x(...shape)] };
  },
  Unflatten: ({ x, batch, make }) => {
    const rows = make.between(1, 3);
    return {
      torch: `nn.Unflatten(1, (2, ${rows}))`,
      make: () => new nn.Unflatten(1, [2, rows]),
      inputs: [x(batch, 2 * rows)],
    };
  },
  PixelShuffle: ({ make, x, batch }) => {
    const factor = make.between(1, 3);
    // PyTorch's gradient has another shape where the batch is empty.
    const shape = [Math.max(batch, 1), make.between(1, 2) * factor ** 2, make.between(1, 3), make.between(1, 3)];
    return { torch: `nn.PixelShuffle(${factor})`, make: () => new nn.PixelShuffle(factor), inputs: [x(...shape)] };
  },
  PixelUnshuffle: ({ make, x, batch }) => {
    const factor = make.between(1, 3);
    const shape = [Math.max(batch, 1), make.between(1, 2), make.between(1, 3) * factor, make.between(1, 3) * factor];
    return { torch: `nn.PixelUnshuffle(${factor})`, make: () => new nn.PixelUnshuffle(factor), inputs: [x(...shape)] };
  },
  "Upsample by areas, cubics and exactly": ({ make, x, batch }) => {
    const mode = make.random.pick(["area", "bicubic", "nearest-exact"] as const);
    const axes = mode === "bicubic" ? 2 : make.between(1, 3);
    const extents = times(axes, () => make.between(2, 5));
    const isSize = mode === "area" || make.flip();
    const numbers = extents.map(() => (isSize ? make.between(1, 8) : make.random.pick([0.5, 1.5, 2, 3])));
    const alignCorners = mode === "bicubic" && make.flip();
    const options = { mode, [isSize ? "size" : "scaleFactor"]: numbers, ...(alignCorners && { alignCorners }) };
    return {
      torch: `nn.Upsample(${isSize ? "size" : "scale_factor"}=(${numbers.join(", ")},), mode="${mode}"${alignCorners ? ", align_corners=True" : ""})`,
      make: () => new nn.Upsample(options),
      inputs: [x(Math.max(batch, 1), make.between(1, 2), ...extents)],
    };
  },
  Upsample: (draw) => {
    const { make, x, batch } = draw;
    const axes = make.between(1, 3);
    const isLinear = make.random.below(3) > 0;
    const mode = isLinear ? (["linear", "bilinear", "trilinear"] as const)[axes - 1]! : "nearest";
    const extents = times(axes, () => make.between(1, 5));
    const isSize = make.random.below(3) === 0;
    // Scales that keep an extent, too. PyTorch's gradients of nearest are those of other places then, but in images.
    const keeps = isLinear || axes === 2;
    const numbers = extents.map((extent) => {
      if (isSize) return make.between(1, 8);
      const factor = make.random.pick(keeps ? [0.5, 1, 1.1, 1.25, 1.5, 2, 2.1, 3] : [0.5, 1, 1.5, 2, 3]);
      return Math.floor(extent * factor) < 1 || (!keeps && Math.floor(extent * factor) === extent) ? 1 : factor;
    });
    const recomputeScaleFactor = !isSize && make.flip();
    const alignCorners = isLinear && make.flip();
    const settings = `${isSize ? "size" : "scale_factor"}=(${numbers.join(", ")},), mode="${mode}"${isLinear ? `, align_corners=${python(alignCorners)}` : ""}${recomputeScaleFactor ? ", recompute_scale_factor=True" : ""}`;
    return {
      torch: `nn.Upsample(${settings})`,
      make: () =>
        new nn.Upsample({
          mode,
          [isSize ? "size" : "scaleFactor"]: numbers,
          recomputeScaleFactor,
          ...(isLinear && { alignCorners }),
        }),
      inputs: [x(batch, make.between(1, 2), ...extents)],
    };
  },
  Dropout: dropout(nn.Dropout, 0),
  Dropout1d: dropout(nn.Dropout1d, 1),
  Dropout2d: dropout(nn.Dropout2d, 2),
  Dropout3d: dropout(nn.Dropout3d, 3),
  Conv1d: convolution(1),
  Conv2d: convolution(2),
  Conv3d: convolution(3),
  ConvTranspose1d: transposed(1),
  ConvTranspose2d: transposed(2),
  ConvTranspose3d: transposed(3),
  MaxPool1d: pool("Max", 1),
  MaxPool2d: pool("Max", 2),
  AvgPool1d: pool("Avg", 1),
  AvgPool2d: pool("Avg", 2),
  MaxPool3d: pool("Max", 3),
  AvgPool3d: pool("Avg", 3),
  AdaptiveAvgPool1d: adaptive("Avg", 1),
  AdaptiveAvgPool2d: adaptive("Avg", 2),
  AdaptiveAvgPool3d: adaptive("Avg", 3),
  AdaptiveMaxPool1d: adaptive("Max", 1),
  AdaptiveMaxPool2d: adaptive("Max", 2),
  AdaptiveMaxPool3d: adaptive("Max", 3),
  BatchNorm1d: channelNorm("BatchNorm1d"),
  BatchNorm2d: channelNorm("BatchNorm2d"),
  BatchNorm3d: channelNorm("BatchNorm3d"),
  InstanceNorm1d: channelNorm("InstanceNorm1d"),
  InstanceNorm2d: channelNorm("InstanceNorm2d"),
  InstanceNorm3d: channelNorm("InstanceNorm3d"),
  GroupNorm: ({ make, x, batch }) => {
    const [groups, affine, eps] = [make.between(1, 3), make.flip(), make.random.pick([1e-5, 0.1])];
    const channels = groups * make.between(1, 3);
    const extents = [make.between(3, 4), make.between(1, 4)].slice(0, make.between(1, 2));
    return {
      torch: `nn.GroupNorm(${groups}, ${channels}, eps=${eps}, affine=${python(affine)})`,
      make: (place) => new nn.GroupNorm(groups, channels, { eps, affine, ...place }),
      inputs: [x(batch, channels, ...extents)],
    };
  },
  LayerNorm: ({ make, x, batch }) => {
    const over = times(make.between(1, 2), () => make.between(3, 4));
    const [eps, elementwiseAffine, bias] = [make.random.pick([1e-5, 0.1]), make.flip(), make.flip()];
    return {
      torch: `nn.LayerNorm([${over}], eps=${eps}, elementwise_affine=${python(elementwiseAffine)}, bias=${python(bias)})`,
      make: (place) => new nn.LayerNorm(over, { eps, elementwiseAffine, bias, ...place }),
      inputs: [x(batch, ...times(make.between(0, 1), () => make.between(1, 3)), ...over)],
    };
  },
  RMSNorm: ({ make, x, batch }) => {
    const over = times(make.between(1, 2), () => make.between(1, 4));
    const [eps, elementwiseAffine] = [make.random.pick([null, 1e-3]), make.flip()];
    return {
      torch: `nn.RMSNorm([${over}], eps=${python(eps)}, elementwise_affine=${python(elementwiseAffine)})`,
      make: (place) => new nn.RMSNorm(over, { eps, elementwiseAffine, ...place }),
      inputs: [x(batch, ...over)],
    };
  },
  Embedding: ({ make, batch }) => {
    const [rows, width] = [make.between(1, 5), make.between(1, 3)];
    const paddingIdx = make.flip() ? make.between(-rows, rows - 1) : null;
    return {
      torch: `nn.Embedding(${rows}, ${width}, padding_idx=${python(paddingIdx)})`,
      make: (place) => new nn.Embedding(rows, width, { paddingIdx, ...place }),
      inputs: [make.whole([batch, ...times(make.between(0, 2), () => make.between(1, 3))], rows)],
    };
  },
  EmbeddingBag: ({ make, batch }) => {
    const [rows, width, mode] = [
      make.between(1, 5),
      make.between(1, 3),
      make.random.pick(["sum", "mean", "max"] as const),
    ];
    const paddingIdx = make.flip() ? make.between(-rows, rows - 1) : null;
    const [isList, includeLastOffset] = [make.flip(), make.flip()];
    const settings = `mode="${mode}", padding_idx=${python(paddingIdx)}, include_last_offset=${python(isList && includeLastOffset)}`;
    const starts = [0, ...times(make.between(0, 3), () => make.between(0, batch)).sort((a, b) => a - b)];
    const offsets = includeLastOffset ? [...starts, batch] : starts;
    return {
      torch: `nn.EmbeddingBag(${rows}, ${width}, ${settings})`,
      make: (place) =>
        new nn.EmbeddingBag(rows, width, {
          mode,
          paddingIdx,
          includeLastOffset: isList && includeLastOffset,
          ...place,
        }),
      inputs: isList
        ? [make.whole([batch], rows), { values: offsets, shape: [offsets.length], dtype: "i32" }]
        : [make.whole([batch, make.between(1, 3)], rows)],
      args: isList ? "a, b" : "a",
      forward: (call, indices, offsets) =>
        (call as (...inputs: unknown[]) => unknown)(indices, isList ? { offsets } : {}),
      second: false,
    };
  },
  RNN: recurrent("RNN"),
  LSTM: recurrent("LSTM"),
  GRU: recurrent("GRU"),
  RNNCell: cell("RNN"),
  LSTMCell: cell("LSTM"),
  GRUCell: cell("GRU"),
  MultiheadAttention: multihead,
  TransformerEncoderLayer: transformer("Encoder"),
  TransformerDecoderLayer: transformer("Decoder"),
};
