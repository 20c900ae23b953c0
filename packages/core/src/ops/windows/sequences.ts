/** Convolutions and pools of sequences [batch, channels, length]: those of images of one row. */
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import type { Tensor } from "../../tensor/tensor";
import { showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { defineFunction } from "../define-function";
import { squeeze, unsqueeze } from "../shape/extents";
import { adaptiveMaxPool2d } from "./adaptive-max-pool";
import { adaptiveAvgPool2d, avgPool2d } from "./average-pool";
import { conv2d, convTranspose2d } from "./convolution";
import { maxPool2d } from "./windows";

export interface Convolution1dOptions {
  /** Steps between windows. Default 1. */
  readonly stride?: number;
  /** Zeros on both sides. Default 0. */
  readonly padding?: number;
  /** Steps between the elements of a window. Default 1. */
  readonly dilation?: number;
  /** Channels are cut into so many groups, each of which sees its own alone. Default 1. */
  readonly groups?: number;
}

export interface ConvTranspose1dCall extends Convolution1dOptions {
  /** More elements at the end, which no input reaches by itself. Default 0. */
  readonly outputPadding?: number;
}

/** As `MaxPoolOptions`, of numbers. */
export interface MaxPool1dOptions {
  readonly stride?: number;
  readonly padding?: number;
  readonly dilation?: number;
  readonly ceilMode?: boolean;
}

/** As `AvgPoolOptions`, of numbers. */
export interface AvgPool1dOptions {
  readonly stride?: number;
  readonly padding?: number;
  readonly countIncludePad?: boolean;
  readonly ceilMode?: boolean;
}

const NUMBERS = { stride: "number", padding: "number" } as const;
const CONVOLUTION = { ...NUMBERS, dilation: "number", groups: "number" } as const;

/** Options of numbers, for images of one row. */
function ofRows<Options extends MaxPool1dOptions>(options: Options, stride?: number) {
  const along = (value: number, none: number): readonly [number, number] => [none, value];
  const { stride: step = stride, padding, dilation, ...rest } = options;
  return {
    ...rest,
    ...(step !== undefined && { stride: along(step, 1) }),
    ...(padding !== undefined && { padding: along(padding, 0) }),
    ...(dilation !== undefined && { dilation: along(dilation, 1) }),
  };
}

function checkSequences(where: string, x: Tensor, name = "sequences"): void {
  const what = name === "sequences" ? "[batch, channels, length]" : "[channels, channels, kernel]";
  check(
    x.shape.length === 3,
    "BAD_SHAPE",
    where,
    () => `${name} must have 3 axes, ${what}, got ${showShape(x.shape)}.`,
    "Reshape them.",
  );
}

/** @throws OptError BAD_ARGUMENT */
function checkSize(where: string, name: string, value: number): void {
  const isSize = Number.isInteger(value) && value >= 1;
  check(isSize, "BAD_ARGUMENT", where, () => `${name} must be an integer >= 1, got ${show(value)}.`, "For example 2.");
}

const inRows = (x: Tensor, call: (rows: Tensor) => Tensor): Tensor => squeeze(call(unsqueeze(x, 2)), 2);

/**
 * Cross-correlation of sequences with weight [outChannels, channels / groups, kernel], plus bias [outChannels].
 * Length of the result = floor((length + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const smooth = conv1d(rand([1, 1, 8]), ones([1, 1, 3]), null, { padding: 1 }); // [1, 1, 8]
 */
export const conv1d = /* @__PURE__ */ defineFunction(
  {
    name: "conv1d",
    torch: "F.conv1d(a, b, None, 2, 1)",
    tensors: ["nm5", "pm3"],
    arguments: [null, { stride: 2, padding: 1 }],
  },
  (x: Tensor, weight: Tensor, bias: Tensor | null = null, options: Convolution1dOptions = {}): Tensor => {
    checkOptions("conv1d", options, CONVOLUTION);
    if (bias !== null) checkTensor("conv1d", bias, "bias");
    checkSequences("conv1d", x);
    checkSequences("conv1d", weight, "weights");
    return inRows(x, (rows) => conv2d(rows, unsqueeze(weight, 2), bias, ofRows(options)));
  },
);

/**
 * The adjoint of `conv1d`. Weight [channels, outChannels / groups, kernel], bias [outChannels].
 * Length of the result = (length - 1) stride - 2 padding + dilation (kernel - 1) + outputPadding + 1.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const longer = convTranspose1d(rand([1, 2, 4]), rand([2, 1, 2]), null, { stride: 2 }); // [1, 1, 8]
 */
export const convTranspose1d = /* @__PURE__ */ defineFunction(
  {
    name: "convTranspose1d",
    torch: "F.conv_transpose1d(a, b, None, 2, 1, 1)",
    tensors: ["nm3", "mp3"],
    arguments: [null, { stride: 2, padding: 1, outputPadding: 1 }],
  },
  (x: Tensor, weight: Tensor, bias: Tensor | null = null, options: ConvTranspose1dCall = {}): Tensor => {
    checkOptions("convTranspose1d", options, { ...CONVOLUTION, outputPadding: "number" });
    if (bias !== null) checkTensor("convTranspose1d", bias, "bias");
    checkSequences("convTranspose1d", x);
    checkSequences("convTranspose1d", weight, "weights");
    const { outputPadding = 0, ...sliding } = options;
    const along = { ...ofRows(sliding), outputPadding: [0, outputPadding] } as const;
    return inRows(x, (rows) => convTranspose2d(rows, unsqueeze(weight, 2), bias, along));
  },
);

/**
 * The largest value of each window of sequences. The stride is the kernel size by default.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT
 * @example
 * maxPool1d(rand([1, 3, 8]), 2); // [1, 3, 4]
 */
export const maxPool1d = /* @__PURE__ */ defineFunction(
  { name: "maxPool1d", torch: "F.max_pool1d(a, 3, 2, 1)", tensors: ["nm5"], arguments: [3, { stride: 2, padding: 1 }] },
  (x: Tensor, kernelSize: number, options: MaxPool1dOptions = {}): Tensor => {
    checkOptions("maxPool1d", options, { ...NUMBERS, dilation: "number", ceilMode: "boolean" });
    checkSize("maxPool1d", "kernelSize", kernelSize);
    checkSequences("maxPool1d", x);
    return inRows(x, (rows) => maxPool2d(rows, [1, kernelSize], ofRows(options, kernelSize)));
  },
);

/**
 * The average of each window of sequences. The stride is the kernel size by default.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT
 * @example
 * avgPool1d(rand([1, 3, 8]), 2); // [1, 3, 4]
 */
export const avgPool1d = /* @__PURE__ */ defineFunction(
  { name: "avgPool1d", torch: "F.avg_pool1d(a, 3, 2, 1)", tensors: ["nm5"], arguments: [3, { stride: 2, padding: 1 }] },
  (x: Tensor, kernelSize: number, options: AvgPool1dOptions = {}): Tensor => {
    checkOptions("avgPool1d", options, { ...NUMBERS, countIncludePad: "boolean", ceilMode: "boolean" });
    checkSize("avgPool1d", "kernelSize", kernelSize);
    checkSequences("avgPool1d", x);
    return inRows(x, (rows) => avgPool2d(rows, [1, kernelSize], ofRows(options, kernelSize)));
  },
);

/**
 * Averages of `outputSize` parts of sequences: see `adaptiveAvgPool2d`.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED for more than 2^24 parts
 * @example
 * adaptiveAvgPool1d(rand([1, 3, 8]), 1); // [1, 3, 1]
 */
export const adaptiveAvgPool1d = /* @__PURE__ */ defineFunction(
  { name: "adaptiveAvgPool1d", torch: "F.adaptive_avg_pool1d(a, 3)", tensors: ["nm5"], arguments: [3] },
  (x: Tensor, outputSize: number): Tensor => {
    checkSize("adaptiveAvgPool1d", "outputSize", outputSize);
    checkSequences("adaptiveAvgPool1d", x);
    return inRows(x, (rows) => adaptiveAvgPool2d(rows, [1, outputSize]));
  },
);

/**
 * The largest values of `outputSize` parts of sequences: see `adaptiveMaxPool2d`.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT
 * @example
 * adaptiveMaxPool1d(rand([1, 3, 8]), 1); // [1, 3, 1]
 */
export const adaptiveMaxPool1d = /* @__PURE__ */ defineFunction(
  { name: "adaptiveMaxPool1d", torch: "F.adaptive_max_pool1d(a, 3)", tensors: ["nm5"], arguments: [3] },
  (x: Tensor, outputSize: number): Tensor => {
    checkSize("adaptiveMaxPool1d", "outputSize", outputSize);
    checkSequences("adaptiveMaxPool1d", x);
    return inRows(x, (rows) => adaptiveMaxPool2d(rows, [1, outputSize]));
  },
);
