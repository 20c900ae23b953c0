/** Tensors: a dense row-major view of device memory, with a shape, a dtype and perhaps a gradient. */
import { backward, type TapeNode } from "./autograd";
import type { Slice } from "./backend/memory";
import type { Device } from "./device";
import { byteSize, type DType, isDType, isFloat, type TypedArray, viewElements } from "./dtype";
import { internalError, OptError } from "./errors";
import { widen } from "./half";
import { flatten, type TensorData } from "./literal";
import * as ops from "./ops";
import { registry } from "./registry";
import { type Op, type Operand, operate } from "./rule/expression";
import { isTensor, keep, track } from "./scope";
import { type Shape, sameShape, showShape, sizeOf } from "./shape";
import { Storage } from "./storage";

/** What must be given back when a tensor is disposed, or was dropped without it. */
interface Holding {
  storage: Storage;
  node: TapeNode | null;
}

/** The backstop for tensors that nobody disposed. */
const dropped = new FinalizationRegistry<Holding>(giveBack);

function giveBack({ storage, node }: Holding): void {
  storage.device.countTensors(-1);
  storage.release();
  node?.release();
}

export class Tensor implements Operand {
  readonly shape: Shape;
  readonly dtype: DType;
  /** Number of elements. */
  readonly size: number;
  /** For parameters: the name under which optimizers and checkpoints know it. */
  name: string | undefined;
  readonly [isTensor] = true;
  /** @internal Counts the overwrites by `set`, for whoever keeps a copy in another dtype. */
  version = 0;
  private readonly holding: Holding;
  private readonly byteOffset: number;
  private disposed = false;
  private leafRequiresGrad = false;
  private gradient: Tensor | null = null;
  private gradientIsOurs = false;

  /** @internal Takes over one ownership of `storage`. Use `tensor`, `parameter`, `zeros`, ... */
  constructor(storage: Storage, byteOffset: number, shape: Shape, dtype: DType) {
    this.shape = shape;
    this.dtype = dtype;
    this.size = sizeOf(shape);
    this.byteOffset = byteOffset;
    this.holding = { storage, node: null };
    storage.device.countTensors(1);
    dropped.register(this, this.holding, this.holding);
    track(this);
  }

  /** @internal A tensor with undefined contents. */
  static empty(shape: Shape, dtype: DType, device: Device): Tensor {
    return new Tensor(Storage.allocate(device, sizeOf(shape) * byteSize(dtype)), 0, shape, dtype);
  }

  get device(): Device {
    return this.holding.storage.device;
  }

  /** @internal The op that made it; null for leaves. */
  get node(): TapeNode | null {
    return this.holding.node;
  }

  /** True for leaves that were marked, and for results of computations on such. Can be set on floating-point leaves. */
  get requiresGrad(): boolean {
    return this.leafRequiresGrad || this.holding.node !== null;
  }

  set requiresGrad(value: boolean) {
    if (this.holding.node !== null && !value) {
      throw new OptError(
        "BAD_ARGUMENT",
        "requiresGrad",
        "only leaves can be changed, got the result of a computation.",
        "Use detach().",
      );
    }
    if (value && !isFloat(this.dtype)) {
      throw new OptError(
        "BAD_DTYPE",
        "requiresGrad",
        `only floating-point tensors have gradients, got ${this.dtype}.`,
        `Use .to("f32").`,
      );
    }
    this.leafRequiresGrad = value && this.holding.node === null;
  }

  /** The accumulated gradient. May be assigned: same shape, dtype and device. */
  get grad(): Tensor | null {
    return this.gradient;
  }

  set grad(value: Tensor | null) {
    if (value === this.gradient) return;
    if (value !== null) {
      if (!(value instanceof Tensor)) {
        throw new OptError(
          "BAD_ARGUMENT",
          "grad",
          `must be a Tensor or null, got ${typeof value}.`,
          "Make one with tensor(data, { shape }).",
        );
      }
      value.memorySlice();
      if (!sameShape(value.shape, this.shape)) {
        throw new OptError(
          "BAD_SHAPE",
          "grad",
          `must have the tensor's shape ${showShape(this.shape)}, got ${showShape(value.shape)}.`,
          "Reshape it.",
        );
      }
      if (value.dtype !== this.dtype)
        throw new OptError(
          "BAD_DTYPE",
          "grad",
          `must have the tensor's dtype ${this.dtype}, got ${value.dtype}.`,
          "Cast it with to().",
        );
      if (value.device !== this.device) {
        throw new OptError(
          "DEVICE_MISMATCH",
          "grad",
          `must be on the tensor's device ${this.device.name}, got ${value.device.name}.`,
          "Move it with to().",
        );
      }
      keep(value);
    }
    this.gradient = value;
    this.gradientIsOurs = false;
  }

  /** @internal A gradient made by backward: freed when it is cleared. */
  receiveGradient(value: Tensor): void {
    this.gradient = keep(value);
    this.gradientIsOurs = true;
  }

  /** @internal zeroGrad: a gradient made by backward is freed, one that was assigned is only let go. */
  clearGradient(): void {
    if (this.gradientIsOurs) this.gradient?.dispose();
    this.gradient = null;
    this.gradientIsOurs = false;
  }

  /** @internal */
  attach(node: TapeNode): void {
    if (this.holding.node !== null) throw internalError("attach", "a tensor has one maker");
    this.holding.node = node;
  }

  /** True after dispose. */
  get isDisposed(): boolean {
    return this.disposed;
  }

  /** @internal @throws OptError DISPOSED */
  checkAlive(): void {
    if (this.disposed) {
      throw new OptError(
        "DISPOSED",
        "Tensor",
        `a tensor must not be used after dispose, got one of shape ${showShape(this.shape)}.`,
        "Return it from tidy, or keep() it.",
      );
    }
  }

  /** @internal The memory. @throws OptError DISPOSED */
  memorySlice(): Slice {
    this.checkAlive();
    return { memory: this.holding.storage.memory, byteOffset: this.byteOffset, length: this.size };
  }

  /** @internal Another tensor on the same memory, from `elementOffset` on, without a tape. */
  alias(shape: Shape = this.shape, elementOffset = 0): Tensor {
    this.memorySlice();
    const byteOffset = this.byteOffset + elementOffset * byteSize(this.dtype);
    return new Tensor(this.holding.storage.retain(), byteOffset, shape, this.dtype);
  }

  /** @internal This memory if nobody else sees it, else a copy. */
  ownCopy(): Tensor {
    return this.holding.storage.isShared ? ops.clone(this) : this.alias();
  }

  /** @internal */
  addInPlace(other: Tensor): void {
    ops.addInto(this, other);
  }

  /** The elements, in a new array. f16 and bf16 are widened to a Float32Array, bool is 0 and 1. */
  async data(): Promise<TypedArray> {
    return this.decode(await this.bytes());
  }

  /** @throws OptError NOT_SYNC where the device answers only later: use `await data()`. */
  dataSync(): TypedArray {
    return this.decode(this.bytesSync());
  }

  /** The elements as stored, little-endian, row-major. */
  async bytes(): Promise<Uint8Array> {
    this.device.checkReadable();
    const { memory, byteOffset } = this.memorySlice();
    return this.device.backend.read(memory, byteOffset, this.size * byteSize(this.dtype));
  }

  /** @throws OptError NOT_SYNC */
  bytesSync(): Uint8Array {
    this.device.checkReadable();
    const { memory, byteOffset } = this.memorySlice();
    const { backend } = this.device;
    if (backend.readSync === undefined) {
      throw new OptError(
        "NOT_SYNC",
        "dataSync",
        `${this.device.name} cannot be read without waiting.`,
        "Use await data().",
      );
    }
    return backend.readSync(memory, byteOffset, this.size * byteSize(this.dtype));
  }

  private decode(bytes: Uint8Array): TypedArray {
    return widen(viewElements(bytes.buffer, bytes.byteOffset, this.size, this.dtype), this.dtype);
  }

  /** The value of a tensor of one element. @throws OptError BAD_SHAPE */
  async item(): Promise<number> {
    this.checkSingle("item");
    return (await this.data())[0]!;
  }

  private checkSingle(where: string): void {
    if (this.size !== 1)
      throw new OptError(
        "BAD_SHAPE",
        where,
        `needs one element, got shape ${showShape(this.shape)}.`,
        "Reduce it first, or use data().",
      );
  }

  /** A tensor of one element where a number is wanted: `loss < 0.1`, `Number(norm)`. @throws OptError BAD_SHAPE, NOT_SYNC */
  [Symbol.toPrimitive](hint: string): number | string {
    if (hint === "string") return this.toString();
    this.checkSingle("Number");
    return this.dataSync()[0]!;
  }

  /** Overwrites the elements in place; a tensor may be of another dtype or device. @throws OptError BAD_SHAPE if the count differs */
  set(data: TensorData | Tensor): void {
    const { memory, byteOffset, length } = this.memorySlice();
    if (data instanceof Tensor) {
      this.checkFits(data.shape);
      ops.assign(this, data);
      this.version++;
      return;
    }
    const { elements, shape } = flatten("set", data, this.dtype);
    const isFlat = ArrayBuffer.isView(data) || typeof data === "number";
    if (!isFlat || elements.length !== length) this.checkFits(shape);
    this.version++;
    this.device.backend.write(
      memory,
      byteOffset,
      new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength),
    );
  }

  private checkFits(shape: Shape): void {
    if (sameShape(shape, this.shape)) return;
    throw new OptError(
      "BAD_SHAPE",
      "set",
      `needs data of shape ${showShape(this.shape)}, got ${showShape(shape)}.`,
      "The shape of a tensor never changes.",
    );
  }

  /**
   * Accumulates the gradient of this tensor with respect to every leaf it was computed from into `leaf.grad`, and frees the tape.
   *
   * @param gradient the gradient of something with respect to this tensor; 1 if it has one element
   * @throws OptError NO_GRADIENT if it requires none, or if it has several elements and no `gradient` was given
   */
  backward(gradient?: Tensor): void {
    this.memorySlice();
    if (!this.requiresGrad)
      throw new OptError(
        "NO_GRADIENT",
        "backward",
        "nothing it was computed from requires a gradient.",
        "Use parameter(), or do not compute inside noGrad.",
      );
    if (gradient === undefined && this.size !== 1) {
      throw new OptError(
        "NO_GRADIENT",
        "backward",
        `a gradient is implied for one element only, got shape ${showShape(this.shape)}.`,
        "Reduce with sum() or mean(), or pass a gradient.",
      );
    }
    if (gradient !== undefined && !sameShape(gradient.shape, this.shape)) {
      throw new OptError(
        "BAD_SHAPE",
        "backward",
        `the gradient must have shape ${showShape(this.shape)}, got ${showShape(gradient.shape)}.`,
        "Reshape it.",
      );
    }
    if (gradient !== undefined && gradient.dtype !== this.dtype) {
      throw new OptError(
        "BAD_DTYPE",
        "backward",
        `the gradient must have dtype ${this.dtype}, got ${gradient.dtype}.`,
        "Cast it with to().",
      );
    }
    if (gradient !== undefined && gradient.device !== this.device) {
      throw new OptError(
        "DEVICE_MISMATCH",
        "backward",
        `the gradient must be on ${this.device.name}, got ${gradient.device.name}.`,
        "Move it with to().",
      );
    }
    const seed = gradient?.alias() ?? ops.fill(this.shape, 1, this.dtype, this.device);
    try {
      backward(this, seed);
    } finally {
      seed.dispose();
    }
  }

  /** The same memory, without a tape. */
  detach(): Tensor {
    return this.alias();
  }

  /** A copy. */
  clone(): Tensor {
    return ops.clone(this);
  }

  /** This tensor in another dtype or on another device; itself if nothing changes. Casts are differentiable, moves are not recorded. */
  to(target: DType | Device | (string & {})): Tensor {
    this.checkAlive();
    if (isDType(target)) return ops.cast(this, target);
    return ops.move(this, typeof target === "string" ? registry.get(target) : target);
  }

  /** Frees the memory, unless another tensor views it, and the gradient that backward made. Later uses throw DISPOSED; a second dispose does nothing. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.clearGradient();
    keep(this);
    dropped.unregister(this.holding);
    giveBack(this.holding);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  toString(): string {
    return `Tensor ${this.dtype} ${showShape(this.shape)} on ${this.device.name}${this.disposed ? " (disposed)" : ""}`;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  [operate](op: Op, operands: readonly (Operand | number)[]): Tensor {
    return ops.elementwise(op, operands as readonly (Tensor | number)[]);
  }

  add(other: Tensor | number): Tensor {
    return ops.elementwise("add", [this, other]);
  }
  sub(other: Tensor | number): Tensor {
    return ops.elementwise("sub", [this, other]);
  }
  mul(other: Tensor | number): Tensor {
    return ops.elementwise("mul", [this, other]);
  }
  div(other: Tensor | number): Tensor {
    return ops.elementwise("div", [this, other]);
  }
  neg(): Tensor {
    return ops.elementwise("neg", [this]);
  }
  exp(): Tensor {
    return ops.elementwise("exp", [this]);
  }
  log(): Tensor {
    return ops.elementwise("log", [this]);
  }
  sqrt(): Tensor {
    return ops.elementwise("sqrt", [this]);
  }
  tanh(): Tensor {
    return ops.elementwise("tanh", [this]);
  }
  /** 1 / (1 + exp(-x)) */
  sigmoid(): Tensor {
    return ops.elementwise("sigmoid", [this]);
  }
  /** max(x, 0) */
  relu(): Tensor {
    return ops.elementwise("relu", [this]);
  }
  /** x * (1 + erf(x / sqrt(2))) / 2 */
  gelu(): Tensor {
    return ops.elementwise("gelu", [this]);
  }
  abs(): Tensor {
    return ops.elementwise("abs", [this]);
  }
  pow(exponent: Tensor | number): Tensor {
    return ops.elementwise("pow", [this, exponent]);
  }
  /** The larger of each pair; NaN if either is. */
  maximum(other: Tensor | number): Tensor {
    return ops.elementwise("maximum", [this, other]);
  }
  /** The smaller of each pair; NaN if either is. */
  minimum(other: Tensor | number): Tensor {
    return ops.elementwise("minimum", [this, other]);
  }

  /** Sum over the given axes, or over all. */
  sum(axis?: number | readonly number[], keepDim = false): Tensor {
    return ops.sum(this, axis, keepDim);
  }
  mean(axis?: number | readonly number[], keepDim = false): Tensor {
    return ops.mean(this, axis, keepDim);
  }
  /** Largest value; equal largest share the gradient. NaN wins. */
  max(axis?: number | readonly number[], keepDim = false): Tensor {
    return ops.maxOver(this, axis, keepDim);
  }
  /** Index (i32) of the largest value along an axis, or in the flattened tensor: the first of equals. */
  argmax(axis?: number, keepDim = false): Tensor {
    return ops.argmax(this, axis, keepDim);
  }
  /** Matrix product of the last two axes, batched over the others; `transposeA`, `transposeB` read a matrix transposed, without a copy. */
  matmul(other: Tensor, options: { transposeA?: boolean; transposeB?: boolean } = {}): Tensor {
    return ops.matmul(this, other, options);
  }
  /** The same elements in another shape, without a copy. One extent may be -1: what is left. */
  reshape(shape: Shape): Tensor {
    return ops.reshape(this, shape);
  }
  /** Swaps two axes (the last two by default). */
  transpose(a = -2, b = -1): Tensor {
    return ops.transpose(this, a, b);
  }
  /** Axes in the order given: result axis i is axis `axes[i]`. */
  permute(axes: readonly number[]): Tensor {
    return ops.permute(this, axes);
  }
  /** Elements `start` to `end` (exclusive) along an axis; negative positions count from the end. */
  slice(start: number, end?: number, axis = 0): Tensor {
    return ops.slice(this, start, end, axis);
  }
  softmax(axis = -1): Tensor {
    return ops.softmax(this, axis, false);
  }
  logSoftmax(axis = -1): Tensor {
    return ops.softmax(this, axis, true);
  }
}
