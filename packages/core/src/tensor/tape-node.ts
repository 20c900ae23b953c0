/** One recorded op. It knows its tensors only as what it holds, so that tensors can point to it. */
import { OptError } from "../errors/errors";
import { shared } from "../host/shared";
import { type Shape, showShape } from "../values/shape";

const isTapeNode: unique symbol = Symbol.for("@opt/core.tapeNode");

/** Counts the nodes of all copies of core, which may depend on each other. */
const count = /* @__PURE__ */ shared("tape", () => ({ next: 0 }));

/** The gradients of an op's inputs from the gradient of its output; null for an input that needs none. */
export type Backward<T> = (gradient: T, saved: readonly T[], needs: readonly boolean[]) => readonly (T | null)[];

/** What a node asks of the tensors that it saves. */
interface SavedTensor {
  readonly name: string | undefined;
  readonly shape: Shape;
  readonly storage: { readonly version: number };
  dispose(): void;
}

/** The part of a forward computation that runs again when backward needs what it saved. */
export interface Recomputation {
  /** Gives its nodes what they saved. */
  restore(): void;
  /** One of its nodes is freed. */
  freed(): void;
}

/** Freed by backward, or when neither its output nor a later op needs it any more. */
export class TapeNode<T extends SavedTensor> {
  /** Nodes are made in order, so that a higher number depends only on lower ones. */
  readonly order = count.next++;
  private users = 1; // the output tensor; later nodes add themselves
  #freed = false;
  /** How often what is saved had been overwritten when it was saved. */
  readonly #versions: number[] = [];
  readonly saved: readonly T[] = [];

  constructor(
    readonly name: string,
    /** Where each input's gradient goes: a leaf tensor, the node that made it, or nowhere. */
    public inputs: readonly (T | TapeNode<T> | null)[],
    saved: readonly T[],
    /** What each saved tensor is: the input of that place, the output (the place after them), or neither (-1). */
    readonly origins: readonly number[],
    private backwardOf: Backward<T> | null,
    /** The output is its input's memory. */
    readonly isView: boolean,
    /** What saves for it, later; null: it is given all at once. */
    private readonly recomputation: Recomputation | null = null,
    /** The inputs whose gradient is piecewise constant in them. Differentiated again it gives zeros, as in PyTorch, not null. */
    readonly flat: readonly number[] = [],
  ) {
    this.save(saved);
    for (const input of inputs) if (input instanceof TapeNode) input.users++;
  }

  get [isTapeNode](): true {
    return true;
  }

  /** Nodes are known by their mark: another copy of core may have made them. */
  static [Symbol.hasInstance](value: unknown): boolean {
    return isTapeNode in Object(value);
  }

  /** True when backward has run through it. */
  get isFreed(): boolean {
    return this.#freed;
  }

  /** Holds tensors for backward. */
  save(saved: readonly T[]): void {
    for (const tensor of saved) {
      (this.saved as T[]).push(tensor);
      this.#versions.push(tensor.storage.version);
    }
  }

  /** Brings back what backward needs. */
  restore(): void {
    this.recomputation?.restore();
  }

  /** @throws OptError NO_GRADIENT if an earlier backward freed it */
  checkNotFreed(): void {
    if (!this.#freed) return;
    const problem = `the tape of ${this.name} was freed by an earlier backward.`;
    throw new OptError("NO_GRADIENT", "backward", problem, "Run the forward computation again.");
  }

  /** @throws OptError CHANGED if what it saved was overwritten since */
  checkUnchanged(): void {
    for (let i = 0; i < this.saved.length; i++) {
      const tensor = this.saved[i]!;
      if (tensor.storage.version !== this.#versions[i]) throw changed(this.name, tensor);
    }
  }

  /** @throws OptError CHANGED */
  backward(gradient: T, needs: readonly boolean[], saved: readonly T[] = this.saved): readonly (T | null)[] {
    this.checkUnchanged(); // once more: a gradient that backward itself has just added to may be saved
    return this.backwardOf!(gradient, saved, needs);
  }

  /** One more tensor is its output. */
  retain(): this {
    this.users++;
    return this;
  }

  free(): void {
    if (this.#freed) return;
    this.#freed = true;
    this.backwardOf = null; // and with it what it refers to
    for (const tensor of this.saved) tensor.dispose();
    (this.saved as T[]).length = 0;
    this.recomputation?.freed();
  }

  /** The output tensor or a later node is gone. */
  release(): void {
    const pending: TapeNode<T>[] = [this];
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      if (--node.users > 0) continue;
      node.free();
      for (const input of node.inputs) if (input instanceof TapeNode) pending.push(input);
      node.inputs = []; // what still refers to it keeps no whole step from the garbage collector
    }
  }
}

function changed(op: string, { name, shape }: SavedTensor): OptError {
  const tensor = `${name === undefined ? "a tensor" : `"${name}"`} of shape ${showShape(shape)}`;
  return new OptError(
    "CHANGED",
    "backward",
    `what ${op} needs for its gradient must be as it was in the forward computation, got ${tensor} that was overwritten since.`,
    "Step, set and clip after backward, or compute with a clone().",
  );
}
