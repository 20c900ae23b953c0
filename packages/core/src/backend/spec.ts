/** Specs say what a kernel computes, launches say on which memory. Both are plain data: they can be cached, recorded and replayed. */

import { hashProgram, type Program } from "../rule/program";
import type { RowProgram } from "../rule/rows/row-program";
import type { Rule } from "../rule/rule";
import type { StoredDType, StoredFormats } from "../rule/stored";
import type { ComputeDType, MapDType, NumberDType } from "../values/dtype";
import type { Scalar, Slice } from "./memory";

/** What is fixed when a kernel is compiled, by kind. Shapes belong to the launch. */
export interface Specs {
  /**
   * Optimizer update over a list of tensors. `stored`: their formats in memory, if these are not the dtype; then dtype is f32. With `sums` the
   * rule writes its last buffer alone, of which one number is stored: the sum of its squares, as `sumSquares` of it gives. For devices with
   * `Backend.sumsRule`.
   */
  rule: { rule: Rule; dtype: ComputeDType; stored?: StoredFormats; sums?: true };
  /** Elementwise expression with broadcasting, one output. */
  map: { program: Program; dtype: MapDType };
  /** Over the middle axis of [outer, length, inner]. The sum of nothing is 0, its mean NaN. NaN wins in max and argmax; argmax gives the first. */
  reduce: { op: "sum" | "mean" | "max" | "argmax"; dtype: MapDType };
  /** Sum of squares of each tensor of a list. With `nonFinite`: 0 if all of its elements are finite, else not 0, perhaps NaN. `stored`: as in rules. */
  sumSquares: { dtype: ComputeDType; stored?: StoredDType; nonFinite?: boolean };
  /**
   * Batched C = op(A) op(B), op being the transpose where flagged. `epilogue` is applied to each element before it is stored, with the bits
   * of a map after the product: buffer 0 is the product's element, the others are operands. With `sums` the rows of a transposed A are
   * added up, too. Both for devices with `Backend.epilogues`. With `windows` B is images, and op(B) their windows, as `unfold` would write
   * them: for devices with `Backend.windows`.
   */
  matmul: {
    transposeA: boolean;
    transposeB: boolean;
    dtype: MapDType;
    epilogue?: Program;
    sums?: true;
    windows?: true;
  };
  /** Strided copy and cast. Floats to i32 and u8 truncate and saturate (NaN gives 0), to bool: is not 0; to narrower floats: nearest even. */
  copy: { from: NumberDType; to: NumberDType };
  /** Rows by index: output[i] = table[indices[i]]. An index out of range gives a row of NaN, of i32 one of 0. */
  gather: { dtype: MapDType };
  /** output[indices[i]] += source[i], from zeros on, in the order of i. Indices out of range add nothing. */
  scatterAdd: { dtype: MapDType };
  /** What a row program computes from each row of matrices. */
  rows: { program: RowProgram; dtype: ComputeDType };
  /** Windows of images as columns: [batch, channels, H, W] to [batch, channels * kernelH * kernelW, outH * outW]; padding reads 0. */
  unfold: { dtype: MapDType };
  /** The adjoint of unfold: overlapping columns are added up. Overwrites its output. */
  fold: { dtype: MapDType };
  /** Largest value of each window and its index in the plane (first of equals; NaN wins). Padding never wins. */
  maxPool2d: { dtype: MapDType };
  /** Sends each gradient to the index that won. Overwrites its output. */
  maxPool2dGrad: { dtype: ComputeDType };
  /** softmax(scale * query key^T) value of each batch, keeping the logarithms of the sums of exponentials. A query without keys gives 0. */
  attention: { dtype: ComputeDType };
  attentionGrad: { dtype: ComputeDType };
  /** (x - mean) / sqrt(variance + eps) * weight + bias by channel of [outer, channels, inner], variance with divisor outer * inner. */
  batchNorm: { dtype: ComputeDType };
  batchNormGrad: { dtype: ComputeDType };
  /** As batchNorm, mean and variance being those of each group of adjacent channels of each of `outer`. */
  groupNorm: { dtype: ComputeDType };
  groupNormGrad: { dtype: ComputeDType };
  /** A sequence through an LSTM: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'), where i, f, g, o = inputs + bias + weight h. */
  lstm: { dtype: ComputeDType };
  lstmGrad: { dtype: ComputeDType };
}

export type Kind = keyof Specs;
/** Every fused kernel: what a device has that has all of them. */
export const FUSED_KINDS = [
  "attention",
  "attentionGrad",
  "batchNorm",
  "batchNormGrad",
  "groupNorm",
  "groupNormGrad",
  "lstm",
  "lstmGrad",
] as const;
/** Several ops in one kernel. Only devices that list it in `Backend.fuses` get it; on others the ops run one by one. */
export type FusedKind = (typeof FUSED_KINDS)[number];
/** What every device has. */
export type PlainKind = Exclude<Kind, FusedKind>;
export type Spec<K extends Kind = Kind> = { [P in K]: { readonly kind: P } & Readonly<Specs[P]> }[K];

/** The sliding window of convolutions and pools over planes of height x width. */
export interface Window2d {
  readonly batch: number;
  readonly channels: number;
  readonly height: number;
  readonly width: number;
  readonly outHeight: number;
  readonly outWidth: number;
  readonly kernel: readonly [number, number];
  readonly stride: readonly [number, number];
  readonly padding: readonly [number, number];
  readonly dilation: readonly [number, number];
}

/** Of what is normalised by channels: [outer, channels, inner]. */
export interface ChannelSizes {
  readonly outer: number;
  readonly channels: number;
  readonly inner: number;
  readonly eps: number;
}

/** `reverse`: the sequence is gone through from its end. */
export interface SequenceSizes {
  readonly length: number;
  readonly batch: number;
  readonly width: number;
  readonly reverse: boolean;
}

/** query [batch, queries, width], key [batch, keys, width], value [batch, keys, columns]; causal: query i sees keys 0 to i alone. */
export interface AttentionInputs extends AttentionSizes, HeadStrides {
  readonly query: Slice;
  readonly key: Slice;
  readonly value: Slice;
}

/** Row r of item b is at `floor(b / heads) * outer + b % heads * head + r * row`. The elements of a row are adjacent. */
export interface HeadStrides {
  readonly heads: number;
  /** Of query, key, value, the output or its gradient, and the gradients of query, key and value. */
  readonly strides: readonly (readonly [outer: number, head: number, row: number])[];
}

/** Rows of an item and their length, in the order of `HeadStrides.strides`. */
export function headShapes({
  queries,
  keys,
  width,
  columns,
}: AttentionSizes): (readonly [rows: number, length: number])[] {
  const inputs = [
    [queries, width],
    [keys, width],
    [keys, columns],
  ] as const;
  return [...inputs, [queries, columns], ...inputs];
}

/** Of dense items. */
export function denseHeads(sizes: AttentionSizes, heads = 1): HeadStrides {
  const strides = headShapes(sizes).map(([rows, length]) => [heads * rows * length, rows * length, length] as const);
  return { heads, strides };
}

export interface AttentionSizes {
  readonly batch: number;
  readonly queries: number;
  readonly keys: number;
  readonly width: number;
  readonly columns: number;
  readonly scale: number;
  readonly causal: boolean;
}

/** Output element (batch, row, column) reads operand i at `batch * s[0] + row * s[1] + column * s[2]`, where s is `strides[i]`. */
export interface EpilogueArguments {
  readonly operands: readonly Slice[];
  readonly strides: readonly (readonly [batch: number, row: number, column: number])[];
  readonly scalars: readonly number[];
  /** Receives the product before the epilogue, dense [batch, m, n], because a gradient needs it. */
  readonly product?: Slice;
}

/** `tensors` of a launch over some rows. */
export type SlicesOfRows = (launch: Launch<"rule">, rows: Int32Array) => readonly (readonly Slice[])[];

/**
 * Memory and sizes of a launch, by kind. All slices are dense and row-major unless strides are given. Outputs overlap no input,
 * except: a rule updates in place, and the output of a map may be one of its inputs when that input is not broadcast.
 * Strides and lengths count elements.
 */
export interface LaunchArguments {
  /** `tensors[t]` holds the slices of one tensor in the order of `rule.buffers`, then its mirror, all of one length; `scalars` are in the order of `rule.scalars`; with stochastic rounding of the first buffer, two keys follow. The lists of tensors never change: devices may keep what they made of them. With `rows` (i32) the gradient has these rows and no others are stepped: at each launch core looks at them, and devices get `slicesOfRows` as `tensors`. */
  rule: {
    tensors: readonly (readonly Slice[])[];
    scalars: readonly Scalar[];
    rows?: Slice;
    slicesOfRows?: SlicesOfRows;
  };
  /** `shape` has its mergeable dimensions merged (rank 0 never occurs: a scalar is [1]); `strides[i]` are input i's, 0 where it is broadcast. */
  map: {
    inputs: readonly Slice[];
    output: Slice;
    scalars: readonly number[];
    shape: readonly number[];
    strides: readonly (readonly number[])[];
  };
  /** input [outer, length, inner], output [outer, inner]; argmax writes i32. */
  reduce: { input: Slice; output: Slice; outer: number; length: number; inner: number };
  /** output [inputs.length]. */
  sumSquares: { inputs: readonly Slice[]; output: Slice };
  /**
   * A is [m, k] ([k, m] if transposed), B [k, n] ([n, k]), C [m, n]; batch i starts at i * strideA and i * strideB (0: shared).
   * With an epilogue, the output may be one of its operands if that is dense [batch, m, n]. `product` overlaps nothing.
   * `sums` [m] receives the sums of a transposed A over k, where the batch is 1: the bits of a reduction.
   * Of windows, B is the [k, n] of each image, one for each batch; transposed, it is [n, k], where k goes along the windows of all images.
   * Then A is [m, k], or with a `strideA`, for devices that read "both", [m, windows] of each image.
   */
  matmul: {
    a: Slice;
    b: Slice;
    output: Slice;
    batch: number;
    m: number;
    n: number;
    k: number;
    strideA: number;
    strideB: number;
    epilogue?: EpilogueArguments;
    sums?: Slice;
    window?: Window2d;
  };
  /**
   * Element (i, j, ...) goes from sum(i * sourceStrides) to sum(i * targetStrides). Target elements are distinct.
   * Source strides may be negative: the slice starts at element (0, 0, ...) all the same, and others lie before it.
   */
  copy: {
    source: Slice;
    target: Slice;
    shape: readonly number[];
    sourceStrides: readonly number[];
    targetStrides: readonly number[];
  };
  /** table [rows, width], indices i32 [count], output [count, width]. */
  gather: { table: Slice; indices: Slice; output: Slice; rows: number; width: number; count: number };
  /** source [count, width], indices i32 [count], output [rows, width]: the sum of the rows at each index, in their order. */
  scatterAdd: { source: Slice; indices: Slice; output: Slice; rows: number; width: number; count: number };
  /** Inputs and outputs in the order of the program: a matrix is [rows, length], a vector or columns [length], numbers are [rows]. labels i32 [rows]. */
  rows: {
    inputs: readonly Slice[];
    labels?: Slice;
    outputs: readonly Slice[];
    scalars: readonly number[];
    rows: number;
    length: number;
    ignoreIndex: number;
  };
  unfold: { input: Slice; output: Slice; window: Window2d };
  fold: { input: Slice; output: Slice; window: Window2d };
  /** output and indices (i32) [batch, channels, outHeight, outWidth]; an index counts within its [height, width] plane. */
  maxPool2d: { input: Slice; output: Slice; indices: Slice; window: Window2d };
  /** gradient and indices as maxPool2d's output, output [batch, channels, height, width]. */
  maxPool2dGrad: { gradient: Slice; indices: Slice; output: Slice; window: Window2d };
  /** output [batch, queries, columns]. */
  attention: AttentionInputs & { output: Slice };
  /** gradient is of attention's output; the gradients of the inputs are overwritten. */
  attentionGrad: AttentionInputs & {
    gradient: Slice;
    queryGradient: Slice;
    keyGradient: Slice;
    valueGradient: Slice;
  };
  /** inputs and gates [length, batch, 4 width], weight [4 width, width], bias [4 width], hidden and cell [batch, width], results and cells [length, batch, width]; gates are kept after their functions. */
  lstm: SequenceSizes & {
    inputs: Slice;
    weight: Slice;
    bias: Slice;
    hidden: Slice;
    cell: Slice;
    results: Slice;
    cells: Slice;
    gates: Slice;
  };
  /** gradient is of results, cellGradient of the last cell; of inputs (and gates), hidden and cell they are overwritten. */
  lstmGrad: SequenceSizes & {
    weight: Slice;
    cell: Slice;
    cells: Slice;
    gates: Slice;
    gradient: Slice;
    cellGradient: Slice;
    inputsGradient: Slice;
    firstHiddenGradient: Slice;
    firstCellGradient: Slice;
  };
  /** input and output [outer, channels, inner], weight, bias, mean and variance [channels]. */
  batchNorm: ChannelSizes & {
    input: Slice;
    weight: Slice;
    bias: Slice;
    output: Slice;
    mean: Slice;
    variance: Slice;
  };
  /** gradient and inputGradient [outer, channels, inner]; weightGradient and biasGradient [channels] are overwritten. */
  batchNormGrad: ChannelSizes & {
    input: Slice;
    weight: Slice;
    mean: Slice;
    variance: Slice;
    gradient: Slice;
    inputGradient: Slice;
    weightGradient: Slice;
    biasGradient: Slice;
  };
  /** As batchNorm's, with mean and variance [outer, groups]. */
  groupNorm: LaunchArguments["batchNorm"] & { groups: number };
  /** As batchNormGrad's, with mean and variance [outer, groups], weightGradient and biasGradient [outer, channels]. */
  groupNormGrad: LaunchArguments["batchNormGrad"] & { groups: number };
}

/** A compiled spec. Backends attach what they need. */
export interface Kernel<K extends Kind = Kind> {
  readonly spec: Spec<K>;
}

export type Launch<K extends Kind = Kind> = {
  [P in K]: { readonly kind: P; readonly kernel: Kernel<P> } & Readonly<LaunchArguments[P]>;
}[K];

/** The key under which a kernel is cached: equal for specs that compile to the same. */
export function specKey(spec: Spec): string {
  switch (spec.kind) {
    case "rule":
      return `rule ${spec.rule.hash} ${spec.stored?.join() ?? spec.dtype}${spec.sums ? " sums" : ""}`;
    case "map":
      return `map ${programHash(spec.program)} ${spec.dtype}`;
    case "reduce":
      return `reduce ${spec.op} ${spec.dtype}`;
    case "matmul":
      return `matmul ${spec.transposeA ? "t" : "n"}${spec.transposeB ? "t" : "n"} ${spec.dtype}${spec.epilogue ? ` ${programHash(spec.epilogue)}` : ""}${spec.sums ? " sums" : ""}${spec.windows ? " windows" : ""}`;
    case "sumSquares":
      return `sumSquares ${spec.stored ?? spec.dtype}${spec.nonFinite ? " nonFinite" : ""}`;
    case "copy":
      return `copy ${spec.from} ${spec.to}`;
    case "rows":
      return `rows ${spec.program.hash} ${spec.dtype}`;
    default:
      return `${spec.kind} ${spec.dtype}`;
  }
}

const hashes = new WeakMap<Program, string>();

function programHash(program: Program): string {
  let hash = hashes.get(program);
  if (hash === undefined) {
    hash = hashProgram(program);
    hashes.set(program, hash);
  }
  return hash;
}
