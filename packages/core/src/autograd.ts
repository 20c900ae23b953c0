/** The tape: reverse-mode automatic differentiation. Forward and backward of each op stand together in `ops/`. */
import { OptError } from "./errors";
import { keep, tidy } from "./scope";
import type { Tensor } from "./tensor";

/** The gradients of an op's inputs from the gradient of its output; null for an input that needs none. */
export type Backward = (
  gradient: Tensor,
  saved: readonly Tensor[],
  needs: readonly boolean[],
) => readonly (Tensor | null)[];

/** One recorded op. Freed by backward, or when neither its output nor a later op needs it any more. */
export class TapeNode {
  /** Nodes are made in order, so that a higher number depends only on lower ones. */
  readonly order = nextOrder++;
  private users = 1; // the output tensor; later nodes add themselves
  private freed = false;

  constructor(
    readonly name: string,
    /** Where each input's gradient goes: a leaf tensor, the node that made it, or nowhere. */
    readonly inputs: readonly (Tensor | TapeNode | null)[],
    private readonly savedTensors: readonly Tensor[],
    private backwardOf: Backward | null,
  ) {
    for (const input of inputs) if (input instanceof TapeNode) input.users++;
  }

  /** @throws OptError NO_GRADIENT if an earlier backward freed it */
  checkNotFreed(): void {
    if (!this.freed) return;
    throw new OptError(
      "NO_GRADIENT",
      "backward",
      `the tape of ${this.name} was freed by an earlier backward.`,
      "Run the forward computation again.",
    );
  }

  backward(gradient: Tensor): readonly (Tensor | null)[] {
    return this.backwardOf!(
      gradient,
      this.savedTensors,
      this.inputs.map((input) => input !== null),
    );
  }

  free(): void {
    if (this.freed) return;
    this.freed = true;
    this.backwardOf = null; // and with it what it refers to
    for (const tensor of this.savedTensors) tensor.dispose();
  }

  /** The output tensor or a later node is gone. */
  release(): void {
    const pending: TapeNode[] = [this];
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      if (--node.users > 0) continue;
      node.free();
      for (const input of node.inputs) if (input instanceof TapeNode) pending.push(input);
    }
  }
}

let nextOrder = 0;
let recording = true;

/** Runs `body` without recording: results do not require gradients. */
export function noGrad<Result>(body: () => Result): Result {
  const before = recording;
  recording = false;
  try {
    return body();
  } finally {
    recording = before;
  }
}

/** Runs `body` with recording on, also inside noGrad (an optimizer's closure). */
export function enableGrad<Result>(body: () => Result): Result {
  const before = recording;
  recording = true;
  try {
    return body();
  } finally {
    recording = before;
  }
}

/**
 * Records an op whose result is `output`, if one of its inputs requires a gradient and recording is on.
 * `saved` are the tensors that `backward` reads; they are held (without a copy) until the tape is freed.
 */
export function record(
  name: string,
  output: Tensor,
  inputs: readonly Tensor[],
  saved: readonly Tensor[],
  backward: Backward,
): Tensor {
  if (!recording || !inputs.some((input) => input.requiresGrad)) return output;
  const edges = inputs.map((input) => (input.requiresGrad ? (input.node ?? input) : null));
  output.attach(
    new TapeNode(
      name,
      edges,
      saved.map((tensor) => keep(tensor.alias())),
      backward,
    ),
  );
  return output;
}

/** @internal Tensor.backward. */
export function backward(root: Tensor, gradient: Tensor): void {
  if (root.node === null) {
    accumulate(root, gradient);
    return;
  }
  const nodes = inReverse(root.node);
  for (const node of nodes) node.checkNotFreed();
  const gradients = new Map<TapeNode, Tensor>([[root.node, gradient.alias()]]);
  try {
    noGrad(() => {
      for (const node of nodes) propagate(node, gradients);
    });
  } finally {
    for (const pending of gradients.values()) pending.dispose(); // what an error left over
  }
}

/** Takes the gradient of a node's output on to its inputs, and frees the node. */
function propagate(node: TapeNode, gradients: Map<TapeNode, Tensor>): void {
  const outputGradient = gradients.get(node);
  if (outputGradient !== undefined) {
    const inputGradients = tidy(() => node.backward(outputGradient).map((g) => (g === outputGradient ? g.alias() : g)));
    node.inputs.forEach((input, i) => {
      const inputGradient = inputGradients[i];
      if (!inputGradient) return;
      if (input instanceof TapeNode) add(gradients, input, inputGradient);
      else {
        if (input !== null) accumulate(input, inputGradient);
        inputGradient.dispose();
      }
    });
    gradients.delete(node);
    outputGradient.dispose();
  }
  node.free();
}

/** The nodes that a root depends on, later ones first. */
function inReverse(root: TapeNode): TapeNode[] {
  const seen = new Set<TapeNode>([root]);
  for (const node of seen) for (const input of node.inputs) if (input instanceof TapeNode) seen.add(input);
  return [...seen].sort((a, b) => b.order - a.order);
}

function add(gradients: Map<TapeNode, Tensor>, node: TapeNode, gradient: Tensor): void {
  const other = gradients.get(node);
  gradients.set(node, keep(other === undefined ? gradient : other.add(gradient)));
  if (other !== undefined) {
    other.dispose();
    gradient.dispose();
  }
}

/** leaf.grad += gradient, in place from the second time on; a gradient never shares memory with anything else. */
function accumulate(leaf: Tensor, gradient: Tensor): void {
  if (leaf.grad === null) leaf.receiveGradient(gradient.ownCopy());
  else leaf.grad.addInPlace(gradient);
}
