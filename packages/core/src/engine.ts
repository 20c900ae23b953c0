/** The engine: reverse-mode automatic differentiation over the tape. */

import { activeRecorder } from "./device/recorder";
import { keep, tidy } from "./device/scope";
import { check } from "./errors/errors";
import { addInto, checkTensor, elementwise, fill, owned } from "./ops";
import { noGrad } from "./tensor/tape";
import { TapeNode } from "./tensor/tape-node";
import type { Tensor } from "./tensor/tensor";
import { sameShape, showShape } from "./values/shape";

type Node = TapeNode<Tensor>;

/** Accumulates the gradient of `root` into every leaf that it was computed from, and frees the tape. */
export function backward(root: Tensor, given?: Tensor): void {
  checkBackward(root, given);
  const seed = given?.alias() ?? fill(root.shape, 1, root.dtype, root.device);
  try {
    if (root.node === null) accumulate(root, seed);
    else run(root.node, seed);
  } finally {
    seed.dispose();
  }
}

function checkBackward(root: Tensor, given: Tensor | undefined): void {
  const where = "backward";
  root.checkAlive();
  check(
    root.requiresGrad,
    "NO_GRADIENT",
    where,
    () => "nothing it was computed from requires a gradient.",
    "Use parameter(), or do not compute inside noGrad.",
  );
  if (given === undefined) {
    check(
      root.size === 1,
      "NO_GRADIENT",
      where,
      () => `a gradient is implied for one element only, got shape ${showShape(root.shape)}.`,
      "Reduce with sum() or mean(), or pass a gradient.",
    );
    return;
  }
  checkTensor(where, given, "the gradient");
  check(
    sameShape(given.shape, root.shape),
    "BAD_SHAPE",
    where,
    () => `the gradient must have shape ${showShape(root.shape)}, got ${showShape(given.shape)}.`,
    "Reshape it.",
  );
  check(
    given.dtype === root.dtype,
    "BAD_DTYPE",
    where,
    () => `the gradient must have dtype ${root.dtype}, got ${given.dtype}.`,
    "Cast it with to().",
  );
  check(
    given.device === root.device,
    "DEVICE_MISMATCH",
    where,
    () => `the gradient must be on ${root.device.name}, got ${given.device.name}.`,
    "Move it with to().",
  );
}

function run(root: Node, seed: Tensor): void {
  const nodes = inReverse(root);
  for (const node of nodes) {
    node.checkNotFreed();
    node.checkUnchanged();
    activeRecorder()?.checkTaped(node.order);
  }
  const gradients = new Map<Node, Tensor>([[root, keep(seed.alias())]]);
  try {
    noGrad(() => {
      for (const node of nodes) propagate(node, gradients);
    });
  } finally {
    for (const pending of gradients.values()) pending.dispose(); // what an error left over
  }
}

/** Takes the gradient of a node's output on to its inputs, and frees the node. */
function propagate(node: Node, gradients: Map<Node, Tensor>): void {
  const outputGradient = gradients.get(node);
  if (outputGradient !== undefined) {
    const inputGradients = tidy(() => node.backward(outputGradient).map((g) => (g === outputGradient ? g.alias() : g)));
    handOn(node, inputGradients, gradients);
    gradients.delete(node);
    outputGradient.dispose();
  }
  node.free();
}

function handOn({ inputs }: Node, inputGradients: readonly (Tensor | null)[], gradients: Map<Node, Tensor>): void {
  let i = 0;
  try {
    for (; i < inputs.length; i++) {
      const input = inputs[i] as Tensor | Node | null;
      const gradient = inputGradients[i];
      if (!gradient) continue;
      if (input instanceof TapeNode) add(gradients, input, gradient);
      else {
        if (input !== null) accumulate(input, gradient);
        gradient.dispose();
      }
    }
  } finally {
    for (; i < inputs.length; i++) inputGradients[i]?.dispose(); // what an error left over
  }
}

/** The nodes that a root depends on, later ones first. */
function inReverse(root: Node): Node[] {
  const seen = new Set<Node>([root]);
  for (const node of seen) for (const input of node.inputs) if (input instanceof TapeNode) seen.add(input);
  return [...seen].sort((a, b) => b.order - a.order);
}

function add(gradients: Map<Node, Tensor>, node: Node, gradient: Tensor): void {
  const other = gradients.get(node);
  gradients.set(node, keep(other === undefined ? gradient : elementwise("add", [other, gradient])));
  if (other !== undefined) {
    other.dispose();
    gradient.dispose();
  }
}

/** leaf.grad += gradient, in place from the second time on; a gradient never shares memory with anything else. */
function accumulate(leaf: Tensor, gradient: Tensor): void {
  if (!leaf.requiresGrad) return; // frozen since the forward computation
  if (leaf.grad === null) leaf.receiveGradient(owned(gradient));
  else addInto(leaf.grad, gradient);
}
