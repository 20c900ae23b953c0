/** A parameter in its group: its name, its state, and the memory that a launch updates. */

import type { Slice } from "../backend/memory";
import { activeRecorder, once } from "../device/recorder";
import { keep } from "../device/scope";
import { copyInto } from "../ops";
import { Tensor } from "../tensor/tensor";
import { follow } from "./state/master";
import { is16Bit, MASTER, type ParameterState } from "./state/state";

export class Slot {
  #current: ParameterState | null = null;
  /** What `gather` returned last, and what it was made from: of a row-sparse gradient its numbers. */
  #slices: readonly Slice[] = [];
  #gatheredKeys: readonly string[] | null = null;
  #gatheredGradient: Tensor | null = null;
  /** State and master copy, which `stateDict` hands out: anybody may dispose them. */
  #own: readonly Tensor[] = [];
  /** The parameter's version that the master copy follows. */
  #masterVersion = -1;
  readonly #is16Bit: boolean;
  /** Who has counted steps that the state does not tell yet. */
  ahead: { settle(): void } | null = null;
  #isRounded = false;

  /** @param number its place among the parameters of the optimizer */
  constructor(
    readonly param: Tensor,
    readonly name: string,
    private readonly number: number,
  ) {
    this.#is16Bit = is16Bit(param);
  }

  /** Stepped in a float32 copy. */
  get hasMaster(): boolean {
    return this.#is16Bit && !this.#isRounded;
  }

  /** Stepped as it is and rounded at random, of which the option is only asked while there is no float32 copy. */
  isDrawn(option: boolean): boolean {
    const isRounded = this.#is16Bit && option && !this.#current?.tensors.has(MASTER);
    if (isRounded !== this.#isRounded) this.#gatheredKeys = null;
    this.#isRounded = isRounded;
    return isRounded;
  }

  get state(): ParameterState | null {
    this.ahead?.settle();
    return this.#current;
  }

  set state(state: ParameterState | null) {
    this.ahead?.settle();
    this.#current = state;
    this.#gatheredKeys = null;
    this.#masterVersion = -1; // a master copy in it may be of other times than the parameter
  }

  /** Frees the state. */
  clear(): void {
    for (const tensor of this.#current?.tensors.values() ?? []) tensor.dispose();
    this.state = null;
  }

  /** True if a launch with this state has been gathered before. */
  isComplete(keys: readonly string[]): boolean {
    return this.#gatheredKeys === keys;
  }

  /** True if there is a gradient to step by. That it fits was seen to when it was set. @throws OptError DISPOSED */
  hasGradient(): boolean {
    const { param } = this;
    param.checkAlive();
    const { grad } = param;
    if (grad === null) {
      this.#gatheredGradient = null;
      return false;
    }
    grad.checkAlive();
    return true;
  }

  /** The parameter is its master copy, rounded. */
  followed(): void {
    this.#masterVersion = this.param.storage.version;
  }

  /** False if the parameter was overwritten by others since. */
  hasFollowed(): boolean {
    return this.#masterVersion === this.param.storage.version;
  }

  /** True if `gather` would return what it did last. */
  isSettled(): boolean {
    const gatheredGradient = this.#gatheredGradient;
    return (
      gatheredGradient === this.param.grad &&
      gatheredGradient?.isDisposed === false &&
      (!this.hasMaster || this.hasFollowed())
    );
  }

  /**
   * The slices of a rule's buffers: parameter, gradient, state; of 16-bit parameters the master copy first, and they themselves last. The same array while nothing has moved.
   * A row-sparse gradient comes as its rows if it is stepped lazily, else in a dense copy of this step.
   *
   * @throws OptError DISPOSED
   */
  gather(keys: readonly string[], lazy: boolean): readonly Slice[] {
    const grad = this.param.grad!;
    const numbers = grad.sparse?.numbers(lazy) ?? grad;
    const { tensors } = this.#current!;
    const master = this.master();
    if (this.#gatheredKeys !== keys) {
      const mirror = master === null ? [] : [this.param];
      const state = keys.map((key) => tensors.get(key)!);
      this.#own = master === null ? state : [master, ...state];
      this.#slices = [master ?? this.param, numbers, ...state, ...mirror].map(
        (tensor) => tensor.packed?.slice() ?? tensor.memorySlice(),
      );
      const [param, ...others] = this.#slices;
      // Elements are numbered in the memory that views share: parts of a parameter draw what it would.
      const place = this.number * 2 ** 32 + param!.byteOffset / 2;
      if (this.#isRounded) this.#slices = [{ ...param!, place }, ...others];
      this.#gatheredKeys = keys;
    } else if (grad !== this.#gatheredGradient) {
      this.#slices = this.#slices.with(1, numbers.memorySlice());
    }
    for (const tensor of this.#own) {
      tensor.checkAlive();
      tensor.isWatched = true;
    }
    this.#gatheredGradient = numbers;
    return this.#slices;
  }

  /** What a step of `gather` writes. */
  get written(): readonly Tensor[] {
    return [this.param, ...this.#own];
  }

  /** The float32 copy in which a 16-bit parameter is stepped, renewed if the parameter was set; null for others. */
  master(): Tensor | null {
    const { param } = this;
    if (!this.hasMaster) return null;
    const { tensors } = this.#current!;
    const known = tensors.get(MASTER);
    if (known !== undefined && (param.storage.isLent || this.hasFollowed())) return known;
    const master = known ?? keep(once(() => Tensor.empty(param.shape, "f32", param.device)));
    if (known === undefined) {
      once(() => copyInto(param, master));
      tensors.set(MASTER, master);
      this.#gatheredKeys = null;
    }
    // Recorded only if the step itself overwrites the parameter: each replay must then follow it again.
    if (activeRecorder()?.overwrites(param.storage)) follow(master, param);
    else if (known !== undefined) once(() => follow(master, param));
    this.followed();
    return master;
  }
}
