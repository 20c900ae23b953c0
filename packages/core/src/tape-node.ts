/** One recorded op. It knows its tensors only as what it holds, so that tensors can point to it. */
import { check } from "./errors";

/** The gradients of an op's inputs from the gradient of its output; null for an input that needs none. */
export type Backward<T> = (gradient: T, saved: readonly T[], needs: readonly boolean[]) => readonly (T | null)[];

/** What a node asks of the tensors that it saves. */
interface Saved {
  dispose(): void;
}

/** Freed by backward, or when neither its output nor a later op needs it any more. */
export class TapeNode<T extends Saved> {
  /** Nodes are made in order, so that a higher number depends only on lower ones. */
  readonly order = nextOrder++;
  private users = 1; // the output tensor; later nodes add themselves
  private freed = false;

  constructor(
    readonly name: string,
    /** Where each input's gradient goes: a leaf tensor, the node that made it, or nowhere. */
    readonly inputs: readonly (T | TapeNode<T> | null)[],
    private readonly saved: readonly T[],
    private backwardOf: Backward<T> | null,
  ) {
    for (const input of inputs) if (input instanceof TapeNode) input.users++;
  }

  /** @throws OptError NO_GRADIENT if an earlier backward freed it */
  checkNotFreed(): void {
    check(
      !this.freed,
      "NO_GRADIENT",
      "backward",
      () => `the tape of ${this.name} was freed by an earlier backward.`,
      "Run the forward computation again.",
    );
  }

  backward(gradient: T): readonly (T | null)[] {
    const needs = this.inputs.map((input) => input !== null);
    return this.backwardOf!(gradient, this.saved, needs);
  }

  free(): void {
    if (this.freed) return;
    this.freed = true;
    this.backwardOf = null; // and with it what it refers to
    for (const tensor of this.saved) tensor.dispose();
  }

  /** The output tensor or a later node is gone. */
  release(): void {
    const pending: TapeNode<T>[] = [this];
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      if (--node.users > 0) continue;
      node.free();
      for (const input of node.inputs) if (input instanceof TapeNode) pending.push(input);
    }
  }
}

let nextOrder = 0;
