/** What tensors can be asked to do, as methods. Generic, so that a tensor's data knows none of the ops behind it. */
import type { Device } from "../device/device";
import type { inspectSymbol } from "../host/inspect-symbol";
import type { Operand, OpName } from "../rule/expression";
import { operate } from "../rule/expression";
import type { Bytes, DType, TypedArray } from "../values/dtype";
import type { TensorData } from "../values/literal";
import type { Shape } from "../values/shape";

/** A number or boolean, or arrays of them as the shape nests. */
export type NestedValues = number | boolean | NestedValues[];

/** An index of one axis: a position, `[start, end, step]`, null for all of it, i32 positions; or a mask, which may be of several axes. */
type IndexOf<T> = number | readonly (number | null | undefined)[] | null | T;

/** How a backward goes. */
export interface BackwardOptions {
  /** Keeps the tape, to run through it once more. By default as `createGraph`. */
  readonly retainGraph?: boolean;
  /** Records the gradients too, so that they can be differentiated. Default false. */
  readonly createGraph?: boolean;
}

export interface Fluent<T> {
  /**
   * The elements, in a new array: `const w: Float32Array = await x.data()`. The dtype decides which array it is: f16 and bf16 are widened
   * to a Float32Array, bool is 0 and 1 in a Uint8Array.
   */
  data<A extends TypedArray = TypedArray>(): Promise<A>;
  /** @throws OptError NOT_SYNC if the device answers only later: use `await data()`. */
  dataSync<A extends TypedArray = TypedArray>(): A;
  /** The elements as stored, little-endian, row-major. */
  bytes(): Promise<Bytes>;
  /** @throws OptError NOT_SYNC */
  bytesSync(): Bytes;
  /** The value of a tensor of one element. @throws OptError BAD_SHAPE */
  item(): Promise<number>;
  /** The elements as nested arrays; a number or boolean where there are no axes. @throws OptError NOT_SYNC */
  tolist(): NestedValues;
  /** Writes the values to the console, long axes cut, on every device. In Node `console.log(x)` does where the device answers at once. */
  print(): Promise<void>;
  /** Shape, dtype and the device's name: values are for `tolist` and for checkpoints. */
  toJSON(): { shape: Shape; dtype: DType; device: string };
  /** @internal For console.log in Node. */
  [inspectSymbol](): string;
  /** A tensor of one element where a number is wanted: `loss < 0.1`, `Number(norm)`. @throws OptError BAD_SHAPE, NOT_SYNC */
  [Symbol.toPrimitive](hint: string): number | string;

  /**
   * Overwrites the elements in place; a tensor may be of another dtype or device, and is cast as by `to` (floats saturate in integers, where
   * PyTorch's `copy_` leaves it to the processor). Numbers come in lists of this shape, or flat in a typed array. Not recorded: backward throws CHANGED if it needs the old elements.
   *
   * @throws OptError BAD_SHAPE if the shape differs, of a typed array the count; BAD_ARGUMENT for the result of a computation, outside of noGrad, and for numbers beyond an integer dtype;
   * BAD_STATE for a copy where PyTorch has a view (`slice`, `select`, `at`, ...): `assign` writes into a part
   */
  set(data: TensorData | T): void;
  /**
   * Accumulates the gradient of this tensor with respect to every leaf it was computed from into `leaf.grad`, and frees the tape unless
   * `retainGraph` keeps it. With `createGraph` the gradients are on the tape themselves.
   *
   * @param gradient the gradient of something with respect to this tensor; 1 if it has one element
   * @throws OptError NO_GRADIENT if it requires none, or if it has several elements and no `gradient` was given;
   * CHANGED if a tensor that a gradient is computed from was overwritten since (by set, a step, clipping), through whichever view.
   * No gradient has changed then.
   */
  backward(gradient?: T, options?: BackwardOptions): void;
  /** The same memory, without a tape. */
  detach(): T;
  /** A copy. */
  clone(): T;
  /** This tensor in another dtype or on another device; itself if nothing changes. Casts are differentiable, moves are not recorded. */
  to(target: DType | Device | (string & {})): T;

  [operate](name: OpName, operands: readonly (Operand | number)[]): T & Operand;
  add(other: T | number): T;
  sub(other: T | number): T;
  mul(other: T | number): T;
  div(other: T | number): T;
  neg(): T;
  exp(): T;
  log(): T;
  sqrt(): T;
  tanh(): T;
  /** 1 / (1 + exp(-x)) */
  sigmoid(): T;
  /** max(x, 0) */
  relu(): T;
  /** x * (1 + erf(x / sqrt(2))) / 2 */
  gelu(): T;
  abs(): T;
  /** log(1 + x), with all digits of a small x. */
  log1p(): T;
  /** e^x - 1, with all digits of a small x. */
  expm1(): T;
  /** x * x */
  square(): T;
  /** 1 / sqrt(x) */
  rsqrt(): T;
  pow(exponent: T | number): T;
  /** The larger of each pair; NaN if either is. */
  maximum(other: T | number): T;
  /** The smaller of each pair; NaN if either is. */
  minimum(other: T | number): T;
  /** 1 where equal, 0 elsewhere, as bool. NaN equals nothing. A number that a 16-bit float is compared with is rounded to that first. */
  eq(other: T | number): T;
  /** Where they differ, as bool: also where one is NaN. */
  ne(other: T | number): T;
  /** Where this is less, as bool. */
  lt(other: T | number): T;
  /** Where this is less or equal, as bool. */
  le(other: T | number): T;
  /** Where this is greater, as bool. */
  gt(other: T | number): T;
  /** Where this is greater or equal, as bool. */
  ge(other: T | number): T;

  /** Sum over the given axes, or over all. */
  sum(axis?: number | readonly number[], keepDim?: boolean): T;
  mean(axis?: number | readonly number[], keepDim?: boolean): T;
  /** Largest value; equal largest share the gradient. NaN wins. */
  max(axis?: number | readonly number[], keepDim?: boolean): T;
  /** Smallest value; equal smallest share the gradient. NaN wins. */
  min(axis?: number | readonly number[], keepDim?: boolean): T;
  /** Index (i32) of the largest value along an axis, or in the flattened tensor: the first of equals. */
  argmax(axis?: number, keepDim?: boolean): T;
  /** Index (i32) of the smallest value along an axis, or in the flattened tensor: the first of equals. */
  argmin(axis?: number, keepDim?: boolean): T;
  /** Matrix product of the last two axes, batched over the others; `transposeA`, `transposeB` read a matrix transposed, without a copy. */
  matmul(other: T, options?: { transposeA?: boolean; transposeB?: boolean }): T;
  /** The same elements in another shape, without a copy. One extent may be -1: what is left. */
  reshape(shape: Shape): T;
  /** Swaps two axes (the last two by default). */
  transpose(a?: number, b?: number): T;
  /** Axes in the order given: result axis i is axis `axes[i]`. */
  permute(axes: readonly number[]): T;
  /** Elements `start` to `end` (exclusive) along an axis; negative positions count from the end. */
  slice(start: number, end?: number, axis?: number): T;
  /** The part at one position of an axis, without that axis, as a copy: `x[i]` of PyTorch is `x.select(0, i)`. Negative positions count from the end. */
  select(axis: number, index: number): T;
  /**
   * What PyTorch's brackets choose, as a copy: `x[1, :, 3]` is `x.at(1, null, 3)`, `x[2:5, ::2]` is `x.at([2, 5], [null, null, 2])`. An i32
   * tensor picks positions of an axis, a boolean mask elements of as many axes as it has.
   */
  at(...index: readonly IndexOf<T>[]): T;
  /**
   * Writes into the tensor: `x[1:3] = value` of PyTorch is `x.assign([[1, 3]], value)`. The index is a list as `at` takes it; the value
   * broadcasts. Under a gradient it is PyTorch's `index_put_`, with gradients to the value and to what stays.
   */
  assign(index: IndexOf<T> | readonly IndexOf<T>[], value: TensorData | T): void;
  /** sum((x - mean)^2) / (count - correction) over the given axes, or over all; `correction` is 1 by default. */
  var(axis?: number | readonly number[], options?: { readonly correction?: number; readonly keepDim?: boolean }): T;
  /** The square root of the variance. */
  std(axis?: number | readonly number[], options?: { readonly correction?: number; readonly keepDim?: boolean }): T;
  /** sum(|x|^p)^(1/p) over the given axes, or over all; p = 2 by default. */
  norm(p?: number, axis?: number | readonly number[], keepDim?: boolean): T;
  /** Values kept between bounds, of which one may be null. */
  clamp(low?: T | number | null, high?: T | number | null): T;
  /** Without the given axes of extent 1, or without all of them. */
  squeeze(axis?: number | readonly number[]): T;
  /** With one more axis, of extent 1. */
  unsqueeze(axis: number): T;
  /** Stretched to a shape: axes of extent 1 are repeated, new ones come first, -1 keeps an extent. */
  expand(shape: Shape): T;
  softmax(axis?: number): T;
  logSoftmax(axis?: number): T;
}
