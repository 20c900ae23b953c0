/** The tensor that a function under `vmap` sees: one sample's shape, for all samples of a batch. */
import type { Slice } from "../backend/memory";
import { keep } from "../device/scope";
import { OptError } from "../errors/errors";
import { Storage } from "../tensor/storage";
import { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";

/** How many `vmap`s are around it. */
export interface Level {
  readonly depth: number;
  /** Samples. */
  readonly size: number;
}

export class Batched extends Tensor {
  /** @param whole All samples, along the first axis. It takes it over */
  constructor(
    readonly whole: Tensor,
    readonly level: Level,
  ) {
    super(Storage.allocate(whole.device, 0), 0, whole.shape.slice(1), whole.dtype);
    keep(whole);
  }

  static override [Symbol.hasInstance](value: unknown): value is Batched {
    return Tensor[Symbol.hasInstance](value) && (value as Partial<Batched>).whole !== undefined;
  }

  override get requiresGrad(): boolean {
    return this.whole.requiresGrad;
  }

  override set requiresGrad(value: boolean) {
    this.whole.requiresGrad = value;
  }

  override memorySlice(): Slice {
    this.checkAlive();
    throw new OptError(
      "UNSUPPORTED",
      "vmap",
      "values can't be read or written one by one inside: a tensor there stands for every sample.",
      "Use where() in place of if, and indexPut() in place of assign(). Compile and recompute around vmap, not within.",
    );
  }

  override alias(shape: Shape = this.shape, elementOffset = 0, dtype = this.dtype): Tensor {
    if (shape !== this.shape || elementOffset !== 0 || dtype !== this.dtype) this.memorySlice();
    this.checkAlive();
    return new Batched(this.whole.alias(), this.level);
  }

  override dispose(): void {
    if (!this.isDisposed) this.whole.dispose();
    super.dispose();
  }
}
