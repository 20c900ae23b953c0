/** Making tensors. */

import type { Device } from "./device";
import { byteSize, type DType, isDType, isFloat, type TypedArray } from "./dtype";
import { check } from "./errors";
import { defaultGenerator, type Generator } from "./generator";
import { narrow } from "./half";
import { flatten, type TensorData } from "./literal";
import { fill, owned } from "./ops";
import { once } from "./recorder";
import { registry } from "./registry";
import { keep, tidy } from "./scope";
import { checkShape, type Shape, showShape, sizeOf } from "./shape";
import { Storage } from "./storage";
import { Tensor } from "./tensor";
import { installMethods } from "./tensor-methods";

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

function deviceOf(device: Device | string | undefined): Device {
  return typeof device === "string" ? registry.get(device) : (device ?? registry.defaultDevice);
}

function checkDType(where: string, dtype: DType | undefined): void {
  check(
    dtype === undefined || isDType(dtype),
    "BAD_DTYPE",
    where,
    () => `dtype must be one of f32, f64, f16, bf16, i32, u8, bool, got ${JSON.stringify(dtype)}.`,
    `For example "f32".`,
  );
}

/** @param again makes the elements of a replay, where the tensor is made in a recorded step */
function upload(elements: TypedArray, shape: Shape, dtype: DType, device: Device, again?: () => TypedArray): Tensor {
  const result = Tensor.empty(shape, dtype, device);
  device.write(result.memorySlice(), bytesOf(elements), again && (() => bytesOf(again())));
  return result;
}

function bytesOf({ buffer, byteOffset, byteLength }: TypedArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function marked(result: Tensor, requiresGrad: boolean | undefined): Tensor {
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
 * @throws OptError BAD_SHAPE if rows differ in length or `shape` holds another count; BAD_DTYPE; UNKNOWN_DEVICE
 * @example
 * const x = tensor([[1, 2], [3, 4]]);
 * const y = tensor(new Float32Array(6), { shape: [2, 3] });
 */
export function tensor(data: TensorData, { shape, dtype, device, requiresGrad }: TensorOptions = {}): Tensor {
  checkDType("tensor", dtype);
  const flat = flatten("tensor", data, dtype);
  return marked(
    upload(flat.elements, shapeFor("tensor", shape, flat.shape, flat.elements.length), flat.dtype, deviceOf(device)),
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
  const result = keep(
    data instanceof Tensor
      ? tidy(() => parameterFrom(data, options))
      : (inPlace(data, options) ?? tensor(data, options)),
  );
  result.requiresGrad = true;
  result.name = options.name;
  return result;
}

function parameterFrom(data: Tensor, { shape, dtype, device }: TensorOptions): Tensor {
  const source = data.detach();
  const moved = device === undefined ? source : source.to(deviceOf(device));
  const cast = dtype === undefined ? moved : moved.to(dtype);
  return owned(shape === undefined ? cast : cast.reshape(shape));
}

function inPlace(data: TensorData, { shape, dtype, device }: TensorOptions): Tensor | undefined {
  if (!(data instanceof Float32Array || data instanceof Float64Array)) return undefined;
  const own: DType = data instanceof Float32Array ? "f32" : "f64";
  const target = deviceOf(device);
  if ((dtype ?? own) !== own) return undefined;
  const checked = shapeFor("parameter", shape, [data.length], data.length);
  const memory = target.wrap(data);
  return memory === undefined ? undefined : new Tensor(new Storage(target, memory), 0, checked, own);
}

/** A tensor from elements as stored (little-endian, row-major): the inverse of `tensor.bytes()`. @throws OptError BAD_SHAPE, BAD_DTYPE */
export function tensorFromBytes(
  bytes: Uint8Array,
  shape: Shape,
  { dtype = "f32", device, requiresGrad }: CreateOptions = {},
): Tensor {
  checkDType("tensorFromBytes", dtype);
  checkShape("tensorFromBytes", shape);
  check(
    bytes.length === sizeOf(shape) * byteSize(dtype),
    "BAD_SHAPE",
    "tensorFromBytes",
    () => `${dtype} ${showShape(shape)} takes ${sizeOf(shape) * byteSize(dtype)} bytes, got ${bytes.length}.`,
    "Check shape and dtype.",
  );
  return marked(upload(bytes, [...shape], dtype, deviceOf(device)), requiresGrad);
}

/** A tensor of one value. @throws OptError BAD_SHAPE, BAD_DTYPE, UNKNOWN_DEVICE */
export function full(shape: Shape, value: number, { dtype = "f32", device, requiresGrad }: CreateOptions = {}): Tensor {
  checkShape("full", shape);
  checkDType("full", dtype);
  return marked(fill([...shape], value, dtype, deviceOf(device)), requiresGrad);
}

export function zeros(shape: Shape, options: CreateOptions = {}): Tensor {
  return full(shape, 0, options);
}

export function ones(shape: Shape, options: CreateOptions = {}): Tensor {
  return full(shape, 1, options);
}

function random(
  where: string,
  shape: Shape,
  { dtype = "f32", device, requiresGrad }: RandomOptions,
  draw: (values: Float32Array) => void,
): Tensor {
  checkShape(where, shape);
  checkDType(where, dtype);
  check(
    isFloat(dtype),
    "BAD_DTYPE",
    where,
    () => `random numbers are floats, got ${dtype}.`,
    `Use dtype: "f32" and cast.`,
  );
  const make = () => {
    const values = new Float32Array(sizeOf(shape));
    draw(values);
    return narrow(values, dtype);
  };
  return marked(upload(once(make), [...shape], dtype, deviceOf(device), make), requiresGrad);
}

/** Uniform in [0, 1). The same numbers on every device and in every float dtype, rounded. */
export function rand(shape: Shape, options: RandomOptions = {}): Tensor {
  const generator = options.generator ?? defaultGenerator;
  return random("rand", shape, options, (values) => {
    for (let i = 0; i < values.length; i++) values[i] = generator.nextFloat();
  });
}

/** Standard normal. The same numbers on every device and in every float dtype, rounded. */
export function randn(shape: Shape, options: RandomOptions = {}): Tensor {
  const generator = options.generator ?? defaultGenerator;
  return random("randn", shape, options, (values) => {
    for (let i = 0; i < values.length; i += 2) {
      const [first, second] = generator.nextNormals();
      values[i] = first;
      if (i + 1 < values.length) values[i + 1] = second;
    }
  });
}

/** What WebGPU asks of the offset of a binding; also whole cache lines. */
const ARENA_ALIGNMENT = 256;

/** Views of one new block of memory, one per shape. Elements are 0. */
export function arena(shapes: readonly Shape[], dtype: DType, device: Device): Tensor[] {
  const step = ARENA_ALIGNMENT / byteSize(dtype);
  let size = 0;
  const starts = shapes.map((shape) => {
    const start = size;
    size += Math.ceil(sizeOf(shape) / step) * step;
    return start;
  });
  const block = fill([size], 0, dtype, device);
  const views = shapes.map((shape, i) => block.alias(shape, starts[i]));
  block.dispose(); // its memory lives as long as one of the views
  return views;
}
