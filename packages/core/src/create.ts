/** Making tensors. */

import { staggeredBytes } from "./backend/stagger";
import type { Device } from "./device/device";
import { deviceOf } from "./device/registry";
import { keep, tidy } from "./device/scope";
import { checkValue } from "./errors/check-value";
import { check, OptError } from "./errors/errors";
import { checkOptions } from "./errors/options";
import { checkAnyTensor, fill, owned } from "./ops";
import { checkFloat64 } from "./ops/check-tensor";
import { checkGenerator, defaultGenerator, type Generator } from "./random/generator";
import { Storage } from "./tensor/storage";
import { presentRecomputation } from "./tensor/tape";
import { Tensor } from "./tensor/tensor";
import { installMethods } from "./tensor-methods";
import { byteSize, checkDType, type DType, isFloat, type TypedArray } from "./values/dtype";
import { narrow } from "./values/half";
import { checkRange, flatten, type TensorData } from "./values/literal";
import { checkShape, type Shape, showShape, sizeOf } from "./values/shape";

installMethods(); // here every tensor begins

export interface CreateOptions {
  readonly dtype?: DType;
  /** An open device or its name; by default the one that `init` opened last. */
  readonly device?: Device | string;
  readonly requiresGrad?: boolean;
}

export interface TensorOptions extends CreateOptions {
  /** By default what the nesting of `data` shows; a typed array is flat. */
  readonly shape?: Shape;
}

export interface RandomOptions extends CreateOptions {
  readonly generator?: Generator;
}

/** What `checkOptions` lets through for every tensor that is made. */
export const CREATE_OPTIONS = { dtype: "any", device: ["string", "object"], requiresGrad: "boolean" } as const;
const TENSOR = { ...CREATE_OPTIONS, shape: "array" } as const;
const PARAMETER = { shape: "array", dtype: "any", device: ["string", "object"], name: "string" } as const;
const RANDOM = { ...CREATE_OPTIONS, generator: "object" } as const;

/** @param again makes the elements in each run of a compiled function */
export function upload(
  elements: TypedArray,
  shape: Shape,
  dtype: DType,
  device: Device,
  again?: () => TypedArray,
): Tensor {
  const result = Tensor.empty(shape, dtype, device);
  device.write(result.memorySlice(), bytesOf(elements), again && (() => bytesOf(again())));
  return result;
}

function bytesOf({ buffer, byteOffset, byteLength }: TypedArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** As the caller made it. */
export function marked(result: Tensor, requiresGrad: boolean | undefined): Tensor {
  if (requiresGrad) result.requiresGrad = true;
  result.isMadeByHand = true;
  return result;
}

function shapeFor(where: string, shape: Shape | undefined, implied: Shape, count: number): Shape {
  if (shape === undefined) return implied;
  checkShape(where, shape);
  check(
    sizeOf(shape) === count,
    "BAD_SHAPE",
    where,
    () => `the shape must hold ${count} elements, got ${showShape(shape)}.`,
    "The product of its extents is the count.",
  );
  return [...shape];
}

/**
 * A tensor with a copy of `data`: a number, nested arrays (f32; booleans give bool) or a typed array (its own dtype).
 *
 * @throws OptError BAD_SHAPE if rows differ in length or `shape` holds another count; BAD_ARGUMENT for numbers beyond an integer dtype; BAD_DTYPE; UNKNOWN_DEVICE
 * @example
 * const x = tensor([[1, 2], [3, 4]]);
 * const y = tensor(new Float32Array(6), { shape: [2, 3] });
 */
export function tensor(data: TensorData, options: TensorOptions = {}): Tensor {
  checkOptions("tensor", options, TENSOR);
  const { shape, dtype, device, requiresGrad } = options;
  if (dtype !== undefined) checkDType("tensor", dtype);
  const flat = flatten("tensor", data, dtype);
  return marked(
    upload(
      flat.elements,
      shapeFor("tensor", shape, flat.shape, flat.elements.length),
      flat.dtype,
      deviceOf("tensor", device),
    ),
    requiresGrad,
  );
}

/**
 * A leaf that optimizers train: a tensor with requiresGrad = true that outlives tidy.
 * On devices that work in the caller's memory (cpu), a typed array of the right dtype is used in place, not copied.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * const weight = parameter(new Float32Array(6), { shape: [2, 3], name: "weight" });
 */
export function parameter(
  data: TensorData | Tensor,
  options: Omit<TensorOptions, "requiresGrad"> & { name?: string } = {},
): Tensor {
  checkOptions("parameter", options, PARAMETER);
  const { name, ...created } = options;
  if (options.dtype !== undefined) checkDType("parameter", options.dtype);
  const result = keep(
    data instanceof Tensor
      ? tidy(() => parameterFrom(data, created))
      : (inPlace(data, created) ?? tensor(data, created)),
  );
  result.requiresGrad = true;
  result.name = name;
  return result;
}

function parameterFrom(data: Tensor, { shape, dtype, device }: TensorOptions): Tensor {
  const source = data.detach();
  const moved = device === undefined ? source : source.to(deviceOf("parameter", device));
  const cast = dtype === undefined ? moved : moved.to(dtype);
  return owned(shape === undefined ? cast : cast.reshape(shape));
}

function inPlace(data: TensorData, { shape, dtype, device }: TensorOptions): Tensor | undefined {
  if (!(data instanceof Float32Array || data instanceof Float64Array)) return undefined;
  const own: DType = data instanceof Float32Array ? "f32" : "f64";
  const target = deviceOf("parameter", device);
  if ((dtype ?? own) !== own) return undefined;
  const checked = shapeFor("parameter", shape, [data.length], data.length);
  const memory = target.wrap(data);
  return memory === undefined ? undefined : new Tensor(new Storage(target, memory, true), 0, checked, own);
}

/** A tensor from elements as stored (little-endian, row-major): the inverse of `tensor.bytes()`. @throws OptError BAD_SHAPE, BAD_DTYPE */
export function tensorFromBytes(bytes: Uint8Array, shape: Shape, options: CreateOptions = {}): Tensor {
  checkOptions("tensorFromBytes", options, CREATE_OPTIONS);
  const { dtype = "f32", device, requiresGrad } = options;
  const isBytes = bytes instanceof Uint8Array;
  checkValue(isBytes, "tensorFromBytes", "bytes", "a Uint8Array", bytes);
  checkDType("tensorFromBytes", dtype);
  checkShape("tensorFromBytes", shape);
  check(
    bytes.length === sizeOf(shape) * byteSize(dtype),
    "BAD_SHAPE",
    "tensorFromBytes",
    () => `${dtype} ${showShape(shape)} takes ${sizeOf(shape) * byteSize(dtype)} bytes, got ${bytes.length}.`,
    "Check shape and dtype.",
  );
  return marked(upload(bytes, [...shape], dtype, deviceOf("tensorFromBytes", device)), requiresGrad);
}

/** A tensor whose elements are not set yet: whatever the memory held. @throws OptError BAD_SHAPE, BAD_DTYPE, UNKNOWN_DEVICE */
export function empty(shape: Shape, options: CreateOptions = {}): Tensor {
  checkOptions("empty", options, CREATE_OPTIONS);
  const { dtype = "f32", device, requiresGrad } = options;
  checkShape("empty", shape);
  checkDType("empty", dtype);
  return marked(Tensor.empty([...shape], dtype, deviceOf("empty", device)), requiresGrad);
}

/**
 * A tensor of x's shape, dtype and device, where the options name no others. Its elements are not set yet. It requires no gradient,
 * unless they say so.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * const y = emptyLike(tensor([1, 2]));
 * y.set(tensor([3, 4]));
 */
export function emptyLike(x: Tensor, options: CreateOptions = {}): Tensor {
  checkAnyTensor("emptyLike", x);
  checkOptions("emptyLike", options, CREATE_OPTIONS);
  const { dtype = x.dtype, device = x.device, requiresGrad = false } = options;
  checkDType("emptyLike", dtype);
  return marked(Tensor.empty([...x.shape], dtype, deviceOf("emptyLike", device)), requiresGrad);
}

/** A tensor of one value. @throws OptError BAD_ARGUMENT for a number beyond an integer dtype; BAD_SHAPE, BAD_DTYPE, UNKNOWN_DEVICE */
export function full(shape: Shape, value: number, options: CreateOptions = {}): Tensor {
  return filled("full", shape, value, options);
}

/** A tensor of zeros. */
export function zeros(shape: Shape, options: CreateOptions = {}): Tensor {
  return filled("zeros", shape, 0, options);
}

/** A tensor of ones. */
export function ones(shape: Shape, options: CreateOptions = {}): Tensor {
  return filled("ones", shape, 1, options);
}

function filled(where: string, shape: Shape, value: number, options: CreateOptions): Tensor {
  checkOptions(where, options, CREATE_OPTIONS);
  const { dtype = "f32", device, requiresGrad } = options;
  checkShape(where, shape);
  checkDType(where, dtype);
  const isNumber = typeof value === "number";
  checkValue(isNumber, where, "the value", "a number", value, "For example 0.");
  checkRange(where, [value], dtype);
  const target = deviceOf(where, device);
  check(
    dtype !== "c64" || value === 0,
    "BAD_DTYPE",
    where,
    () => `a c64 tensor is filled with 0, got ${value}.`,
    "Use viewAsComplex(x) on its parts.",
  );
  checkFloat64(where, dtype, target);
  return marked(fill([...shape], value, dtype, target), requiresGrad);
}

/**
 * Zeros of x's shape, dtype and device, where the options name no others. It requires no gradient, unless they say so.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * zerosLike(tensor([1, 2])); // [0, 0]
 */
export function zerosLike(x: Tensor, options: CreateOptions = {}): Tensor {
  return filledLike("zerosLike", x, 0, options);
}

/**
 * Ones of x's shape, dtype and device, where the options name no others. It requires no gradient, unless they say so.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE, UNKNOWN_DEVICE
 * @example
 * onesLike(tensor([3, 2])); // [1, 1]
 */
export function onesLike(x: Tensor, options: CreateOptions = {}): Tensor {
  return filledLike("onesLike", x, 1, options);
}

function filledLike(where: string, x: Tensor, value: number, options: CreateOptions): Tensor {
  checkAnyTensor(where, x);
  checkOptions(where, options, CREATE_OPTIONS);
  const { dtype = x.dtype, device = x.device, requiresGrad = false } = options;
  return filled(where, x.shape, value, { dtype, device, requiresGrad });
}

/** Floats that `draw` fills from the generator. */
function random(
  where: string,
  shape: Shape,
  options: RandomOptions,
  draw: (values: Float32Array, generator: Generator) => void,
): Tensor {
  checkOptions(where, options, RANDOM);
  const { dtype = "f32", device, requiresGrad, generator = defaultGenerator } = options;
  checkGenerator(where, generator);
  checkShape(where, shape);
  checkDType(where, dtype);
  check(
    isFloat(dtype),
    "BAD_DTYPE",
    where,
    () => `random numbers are floats, got ${dtype}.`,
    `Use dtype: "f32" and cast.`,
  );
  const target = deviceOf(where, device);
  const make = drawing(generator, () => {
    const values = room(where, sizeOf(shape), Float32Array);
    draw(values, generator);
    return narrow(values, dtype);
  });
  return marked(upload(make(), [...shape], dtype, target, make), requiresGrad);
}

/** `draw`, which in a recomputation draws the same numbers again. */
export const drawing = <Result>(generator: Generator, draw: () => Result) =>
  presentRecomputation()?.drawn(generator, draw) ?? draw;

/** Room for what is made on the host. @throws OptError OUT_OF_MEMORY */
export function room<A extends Float32Array | Float64Array>(
  where: string,
  count: number,
  kind: new (count: number) => A,
): A {
  try {
    return new kind(count);
  } catch (cause) {
    throw new OptError("OUT_OF_MEMORY", where, `the host has no room for ${count} numbers.`, "Make parts.", { cause });
  }
}

/** Uniform in [0, 1). The same numbers on every device and in every float dtype, rounded down. */
export function rand(shape: Shape, options: RandomOptions = {}): Tensor {
  return random("rand", shape, options, (values, generator) => {
    for (let i = 0; i < values.length; i++) values[i] = generator.nextFloat(options.dtype);
  });
}

/** Standard normal. The same numbers on every device and in every float dtype, rounded. */
export function randn(shape: Shape, options: RandomOptions = {}): Tensor {
  return random("randn", shape, options, (values, generator) => {
    for (let i = 0; i < values.length; i += 2) {
      const [first, second] = generator.nextNormals();
      values[i] = first;
      if (i + 1 < values.length) values[i + 1] = second;
    }
  });
}

/** What WebGPU asks of the offset of a binding; also whole cache lines. */
const ARENA_ALIGNMENT = 256;

/** Views of one new block of memory, one per shape of each run: runs are far enough apart in cache. Elements are 0. */
export function arena(runs: readonly (readonly Shape[])[], dtype: DType, device: Device): Tensor[] {
  const bytes = byteSize(dtype);
  const starts: number[] = [];
  let end = 0;
  for (const shapes of runs) {
    const start = end;
    for (const shape of shapes) {
      starts.push(end / bytes);
      end += Math.ceil((sizeOf(shape) * bytes) / ARENA_ALIGNMENT) * ARENA_ALIGNMENT;
    }
    end = start + staggeredBytes(end - start);
  }
  const block = fill([end / bytes], 0, dtype, device);
  const views = runs.flat().map((shape, i) => block.alias(shape, starts[i]));
  block.dispose(); // its memory lives as long as one of the views
  return views;
}
