/** Tensors as data: a dense row-major view of device memory, with a shape, a dtype, perhaps a maker and a gradient. */

import type { Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import type { Device } from "../device/device";
import { propertyWritten } from "../device/observed";
import type { ScalarSource } from "../device/scalar-source";
import { isTensor, keep, type Scoped, track, untrack } from "../device/scope";
import { activeTracer } from "../device/tracer";
import { checkValue } from "../errors/check-value";
import { check, internalError, OptError } from "../errors/errors";
import { show } from "../errors/show";
import type { PackedDType } from "../rule/codebook";
import { byteSize, type DType, isDifferentiable } from "../values/dtype";
import { type Shape, sameShape, showShape, sizeOf } from "../values/shape";
import type { Fluent } from "./fluent";
import type { MeshAxis, Placement } from "./placement";
import { Storage } from "./storage";
import type { TapeNode } from "./tape-node";

/** What must be given back when a tensor is disposed, or was dropped without it. */
interface TensorResources {
  storage: Storage;
  node: TapeNode<Tensor> | null;
  /** The garbage collector gives it back, once. */
  isLeft: boolean;
}

/** The backstop for tensors that nobody disposed. */
const dropped = new FinalizationRegistry<TensorResources>((holding) => {
  giveBack(holding);
  holding.storage.device.pool.settle();
});

function giveBack({ storage, node }: TensorResources): void {
  storage.device.pool.tensors--;
  storage.release();
  node?.release();
}

/** What is asked of a gradient that has only some rows. */
export interface SparseGradient {
  /** Its numbers, each row once, which may be changed in place. */
  merged(): Tensor;
  /** What a step reads: of no more than its rows if it is `lazy`. */
  numbers(lazy: boolean): Tensor;
  /** A lazy step: the launch for its rows alone, of what would be written by all. */
  launch(launch: Launch<"rule">, scalarSource: ScalarSource, written: readonly Tensor[]): void;
  /** Leaves it no rows, and returns its numbers. */
  emptied(): Tensor;
  /** A new gradient from two, of which at least one is row-sparse. */
  plus(a: Tensor, b: Tensor): Tensor;
}

/** What is asked of state that lies packed in blocks. */
export interface PackedState {
  readonly format: PackedDType;
  readonly shape: Shape;
  /** Its elements, for launches of rules. */
  slice(): Slice;
  /** Overwrites them with float32 values of the same shape. */
  pack(values: Tensor): void;
  /** Its values in float32, in memory of their own. */
  unpacked(): Tensor;
}

// The methods of `Fluent` are installed by tensor-methods.ts, which stands above the ops.
export interface Tensor extends Fluent<Tensor> {}

/** Elements of one dtype in a shape, dense and row-major, on a device. Made by `tensor`, `parameter` and others; operations are methods. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: every tensor begins in create.ts, which installs the methods
export class Tensor {
  /** For parameters: the name under which optimizers and checkpoints know it. */
  name: string | undefined;
  /** @internal See `replacing` in scope.ts. */
  isReplaceable = false;
  /** @internal See scope.ts. */
  made: (Scoped | null)[] | null = null;
  /** @internal */
  order = 0;
  /** @internal Made from the user's data, not by an op. */
  isMadeByHand = false;
  /** @internal See scope.ts. */
  declare isFreedByCompile?: boolean;
  /** @internal A leaf that required a gradient once: freezing it does not make it a buffer. */
  declare isParameter?: boolean;
  /** @internal See `copiesIn`. */
  declare isCopy?: boolean;
  /** @internal See `markReplaced`. */
  declare replaced?: number;
  /** @internal What took its place last. */
  declare successor?: Tensor | undefined;
  /**
   * @internal Asked by steps of optimizers that have it (`isStep`), and by what clips the gradients of a list with it.
   */
  declare checkSteps?:
    | ((
        groups: readonly { readonly params: readonly Tensor[]; readonly clip?: { readonly norm?: number } | null }[],
        isStep?: boolean,
      ) => void)
    | undefined;
  /** @internal See `placement`. */
  declare placed?: Placement<Tensor> | undefined;
  /** @internal Ranks that have other samples, over which its gradient is averaged. */
  declare averagedOver?: MeshAxis<Tensor> | undefined;
  /** @internal The tensor of which it is a range of elements, where ranks have the others. */
  declare spanOf?: Tensor;
  /** @internal The rank that steps it, where others have nothing of it: its index along an axis. */
  declare steppedBy?: { readonly axis: MeshAxis<Tensor>; readonly index: number };
  /** @internal Itself, of row-sparse gradients. */
  declare readonly sparse?: SparseGradient;
  /** @internal See `onGradient`. */
  declare gradientHooks?: Set<() => void>;
  /** @internal What the bytes of an optimizer's state mean. */
  declare packed?: PackedState;
  readonly #holding: TensorResources;
  readonly #byteOffset: number;
  readonly #extents: Shape;
  readonly #elementType: DType;
  readonly #count: number;
  /** The recorded writes to its memory that it knows of. */
  #recordedWrites: number;
  #disposed = false;
  #leafRequiresGrad = false;
  #gradient: Tensor | null = null;
  #gradientIsOurs = false;

  /** @internal Takes over one ownership of `storage`, and `shape`. Use `tensor`, `parameter`, `zeros`, ... */
  constructor(storage: Storage, byteOffset: number, shape: Shape, dtype: DType) {
    this.#extents = Object.isFrozen(shape) ? shape : Object.freeze(shape);
    this.#elementType = dtype;
    this.#count = sizeOf(shape);
    this.#byteOffset = byteOffset;
    this.#holding = { storage, node: null, isLeft: false };
    this.#recordedWrites = storage.recordedWrites;
    storage.device.pool.tensors++;
    track(this);
  }

  get [isTensor](): true {
    return true;
  }

  /** Tensors are known by their mark: another copy of core may have made them. */
  static [Symbol.hasInstance](value: unknown): value is Tensor {
    return isTensor in Object(value);
  }

  /** @internal A tensor with undefined contents. */
  static empty(shape: Shape, dtype: DType, device: Device): Tensor {
    return new Tensor(Storage.allocate(device, sizeOf(shape) * byteSize(dtype)), 0, shape, dtype);
  }

  /** The extents, frozen: results share them. */
  get shape(): Shape {
    return this.#extents;
  }

  get dtype(): DType {
    return this.#elementType;
  }

  /** Number of elements. */
  get size(): number {
    return this.#count;
  }

  get device(): Device {
    return this.#holding.storage.device;
  }

  /** Which part of a whole tensor this one is, where its whole is divided over ranks; null for whole ones. Gradients have that of their tensor. */
  get placement(): Placement<Tensor> | null {
    return this.placed ?? null;
  }

  set placement(value: Placement<Tensor> | null) {
    this.placed = value ?? undefined;
  }

  /** @internal */
  get storage(): Storage {
    return this.#holding.storage;
  }

  /** @internal Where it begins in its memory. */
  get byteOffset(): number {
    return this.#byteOffset;
  }

  /** @internal The op that made it; null for leaves. */
  get node(): TapeNode<Tensor> | null {
    return this.#holding.node;
  }

  /** True for leaves that were marked, and for results of computations on such. Can be set on floating-point leaves. */
  get requiresGrad(): boolean {
    if (this.#holding.node !== null || !this.#knowsHistory) return true;
    activeTracer()?.leaf(this, this.#leafRequiresGrad);
    return this.#leafRequiresGrad;
  }

  set requiresGrad(value: boolean) {
    const isBoolean = typeof value === "boolean";
    check(isBoolean, "BAD_ARGUMENT", "requiresGrad", () => `must be true or false, got ${show(value)}.`);
    check(
      value || this.#holding.node === null,
      "BAD_ARGUMENT",
      "requiresGrad",
      () => "only leaves can be changed, got the result of a computation.",
      "Use detach().",
    );
    check(
      !value || isDifferentiable(this.dtype),
      "BAD_DTYPE",
      "requiresGrad",
      () => `only floating-point tensors have gradients, got ${this.dtype}.`,
      `Use .to("f32").`,
    );
    this.#leafRequiresGrad = value && this.#holding.node === null;
    propertyWritten();
    if (this.#leafRequiresGrad) this.isParameter = true;
  }

  /**
   * The accumulated gradient. May be assigned: same shape, dtype and device. It is freed when it is cleared or replaced,
   * but for one that you made yourself (with `tensor`, `zeros`, ...) outside of tidy: that is yours.
   */
  get grad(): Tensor | null {
    activeTracer()?.gradient(this, this.#gradient, false);
    return this.#gradient;
  }

  set grad(value: Tensor | null) {
    activeTracer()?.gradient(this, this.#gradient, true);
    if (value === this.#gradient) return;
    if (value !== null) this.checkGradient("grad", value);
    const isOurs = value !== null && (value.made !== null || !value.isMadeByHand);
    this.clearGradient();
    if (value !== null) keep(value);
    if (this.placed && value !== null) value.placed = this.placed;
    this.#gradient = value;
    this.#gradientIsOurs = isOurs;
  }

  /** @internal @throws OptError BAD_ARGUMENT, DISPOSED, BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH */
  checkGradient(where: string, value: Tensor): void {
    checkValue(
      value instanceof Tensor,
      where,
      "the gradient",
      "a tensor",
      value,
      "Make one with tensor(data, { shape }).",
    );
    value.checkAlive();
    check(
      sameShape(value.shape, this.shape),
      "BAD_SHAPE",
      where,
      () => `the gradient must have the tensor's shape ${showShape(this.shape)}, got ${showShape(value.shape)}.`,
      "Reshape it.",
    );
    check(
      value.dtype === this.dtype,
      "BAD_DTYPE",
      where,
      () => `the gradient must have the tensor's dtype ${this.dtype}, got ${value.dtype}.`,
      "Cast it with to().",
    );
    check(
      value.device === this.device,
      "DEVICE_MISMATCH",
      where,
      () => `the gradient must be on the tensor's device ${this.device.name}, got ${value.device.name}.`,
      "Move it with to().",
    );
  }

  /** @internal A gradient made by backward. */
  receiveGradient(value: Tensor): void {
    this.#gradient = keep(value);
    if (this.placed) value.placed = this.placed;
    this.#gradientIsOurs = true;
  }

  /** @internal Frees the gradient, or lets go of one that is the user's. */
  clearGradient(): void {
    activeTracer()?.gradient(this, this.#gradient, true);
    this.#freeGradient();
  }

  #freeGradient(): void {
    if (this.#gradientIsOurs) this.#gradient?.dispose();
    this.#gradient = null;
    this.#gradientIsOurs = false;
  }

  /** @internal */
  attach(node: TapeNode<Tensor>): void {
    if (this.#holding.node !== null) throw internalError("attach", "a tensor has one maker");
    this.#holding.node = node;
  }

  /** @internal Its elements are another op's result from now on, which was written into its memory. Takes over one use of the node. */
  rewrite(node: TapeNode<Tensor>): void {
    const { node: before, storage } = this.#holding;
    this.#holding.node = node;
    before?.release();
    this.#recordedWrites = ++storage.recordedWrites;
  }

  get #knowsHistory(): boolean {
    return this.#recordedWrites === this.#holding.storage.recordedWrites;
  }

  /** @internal @throws OptError BAD_STATE if another tensor on its memory was assigned to under a gradient */
  checkHistory(where: string): void {
    if (this.#knowsHistory) return;
    const problem = `a tensor of shape ${showShape(this.shape)} can't be used under a gradient after its memory was assigned through another one.`;
    const cure = "Take the view (reshape, detach) after assign(), or assign through this tensor.";
    throw new OptError("BAD_STATE", where, problem, cure);
  }

  /** True after dispose. */
  get isDisposed(): boolean {
    return this.#disposed;
  }

  /** @internal @throws OptError DISPOSED */
  checkAlive(): void {
    if (!this.#disposed) return; // each op asks: a closure for the error would be garbage
    const problem = `a tensor must not be used after dispose, got one of shape ${showShape(this.shape)}.`;
    const cure = this.isFreedByCompile
      ? "Return it from the compiled function, which frees all others after each call."
      : "Return it from tidy, or keep() it.";
    throw new OptError("DISPOSED", "Tensor", problem, cure);
  }

  /** @internal The memory, in numbers. @throws OptError DISPOSED */
  memorySlice(): Slice {
    this.checkAlive();
    const length = this.#elementType === "c64" ? 2 * this.#count : this.#count;
    return { memory: this.#holding.storage.memory, byteOffset: this.#byteOffset, length };
  }

  /** @internal Another tensor on the same memory, from `elementOffset` on, without a tape. */
  alias(shape: Shape = this.shape, elementOffset = 0, dtype = this.dtype): Tensor {
    this.memorySlice();
    const byteOffset = this.#byteOffset + elementOffset * byteSize(this.dtype);
    return new Tensor(this.#holding.storage.retain(), byteOffset, shape, dtype);
  }

  /** @internal Its memory comes back when it is collected. */
  leave(): void {
    if (this.#holding.isLeft) return;
    this.#holding.isLeft = true;
    dropped.register(this, this.#holding, this.#holding);
  }

  /** Frees the memory, unless another tensor views it, and the gradient that backward made. Later uses throw DISPOSED; a second dispose does nothing. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#freeGradient();
    untrack(this);
    if (this.#holding.isLeft) dropped.unregister(this.#holding);
    giveBack(this.#holding);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  toString(): string {
    return `Tensor ${this.dtype} ${showShape(this.shape)} on ${this.device.name}${this.#disposed ? " (disposed)" : ""}`;
  }
}
