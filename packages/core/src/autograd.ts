/** Autograd: reverse-mode automatic differentiation over the tape. */

import { collect, track, untrack } from "./device/scope";
import { watching } from "./device/watcher";
import { checkValue } from "./errors/check-value";
import { check } from "./errors/errors";
import { checkOptions } from "./errors/options";
import { addInto, checkAnyTensor, clone, elementwise, fill, owned, reshape } from "./ops";
import { withAutocast } from "./tensor/autocast";
import { overSamples } from "./tensor/batching";
import type { BackwardOptions } from "./tensor/fluent";
import { enableGrad, noGrad, record } from "./tensor/tape";
import { TapeNode } from "./tensor/tape-node";
import type { Tensor } from "./tensor/tensor";
import { showShape } from "./values/shape";

type Node = TapeNode<Tensor>;

/** How a backward goes, and how far it is. */
interface Pass {
  readonly createGraph: boolean;
  readonly retainGraph: boolean;
  /** What grad() asks for, as it is found; null: leaves accumulate. */
  readonly wanted: Map<Tensor | Node, Tensor | null> | null;
  /** Of nodes that are still to run. */
  readonly gradients: Map<Node, Tensor>;
}

/** How `grad` goes; `gradient`: of the output, by default 1. */
export interface GradOptions extends BackwardOptions {
  readonly gradient?: Tensor;
  /** null instead of an error for inputs that the output was not computed from. Default false. */
  readonly allowUnused?: boolean;
}

const OPTIONS = { retainGraph: "boolean", createGraph: "boolean" } as const;

/** Accumulates the gradient of `root` into every leaf that it was computed from, and frees the tape unless it is retained. */
export function backward(root: Tensor, given?: Tensor, options: BackwardOptions = {}): void {
  overSamples(backward, root, given, options);
  checkOptions("backward", options, OPTIONS);
  checkBackward("backward", root, given);
  start(root, given, options, null);
}

/** A list as long as the inputs: `const [dx, dy] = grad(z, [x, y])` needs no check of either. */
export type OneEach<Inputs extends readonly Tensor[], Each> = { -readonly [Index in keyof Inputs]: Each };

/**
 * The gradients of `output` by `inputs`: leaves or results on the way to it. No `.grad` changes.
 * With `createGraph` they can be differentiated themselves; with `retainGraph` (by default as `createGraph`) the tape stays.
 * With `allowUnused` it is null for an input that `output` was not computed from. As torch.autograd.grad.
 *
 * @throws OptError NO_GRADIENT for an input that `output` was not computed from, unless `allowUnused`; further as `backward`
 * @example
 * const x = parameter([1, 2]);
 * const [slope] = grad(x.pow(3).sum(), [x], { createGraph: true });
 * const [curvature] = grad(slope.sum(), [x]); // 6 x
 */
export function grad<const Inputs extends readonly Tensor[]>(
  output: Tensor,
  inputs: Inputs,
  options: GradOptions & { readonly allowUnused: true },
): OneEach<Inputs, Tensor | null>;
export function grad<const Inputs extends readonly Tensor[]>(
  output: Tensor,
  inputs: Inputs,
  options?: GradOptions,
): OneEach<Inputs, Tensor>;
export function grad(output: Tensor, inputs: readonly Tensor[], options: GradOptions = {}): (Tensor | null)[] {
  const samples = overSamples(grad as (...given: unknown[]) => (Tensor | null)[], output, inputs, options);
  if (samples) return samples;
  const where = "grad";
  checkOptions(where, options, { ...OPTIONS, gradient: "object", allowUnused: "boolean" });
  checkAnyTensor(where, output, "the output");
  checkValue(Array.isArray(inputs), where, "inputs", "a list of tensors", inputs, "Wrap it: [w].");
  const keys = inputs.map((input, i) => {
    checkAnyTensor(where, input, `input ${i}`);
    input.checkHistory(where);
    check(
      input.requiresGrad,
      "NO_GRADIENT",
      where,
      () => `input ${i} does not require a gradient.`,
      "Use parameter(), or do not compute inside noGrad.",
    );
    return input.node ?? input;
  });
  checkBackward(where, output, options.gradient);
  const wanted = new Map<Tensor | Node, Tensor | null>(keys.map((key) => [key, null]));
  try {
    start(output, options.gradient, options, wanted);
    return keys.map((key, i) => {
      const found = wanted.get(key)!;
      check(
        found !== null || options.allowUnused === true,
        "NO_GRADIENT",
        where,
        () => `the output must be computed from input ${i}, got one that it is not.`,
        "Leave it out, or take null for it: { allowUnused: true }.",
      );
      if (found === null) return null;
      return options.createGraph ? view(found) : owned(found);
    });
  } finally {
    for (const found of wanted.values()) found?.dispose();
  }
}

function checkBackward(where: string, root: Tensor, given: Tensor | undefined): void {
  root.checkAlive();
  root.checkHistory(where);
  check(
    root.requiresGrad,
    "NO_GRADIENT",
    where,
    () => "nothing it was computed from requires a gradient.",
    "Use parameter(), and compute outside of noGrad. Results of compiled functions carry no gradient: call backward() inside.",
  );
  if (given === undefined) {
    check(
      root.size === 1 && root.dtype !== "c64",
      "NO_GRADIENT",
      where,
      () => `a gradient is implied for one real element only, got ${root.dtype} of shape ${showShape(root.shape)}.`,
      "Reduce with sum() or mean(), or pass a gradient.",
    );
    return;
  }
  root.checkGradient(where, given);
}

function start(root: Tensor, given: Tensor | undefined, options: BackwardOptions, wanted: Pass["wanted"]): void {
  const { createGraph = false, retainGraph = createGraph } = options;
  const pass: Pass = { createGraph, retainGraph, wanted, gradients: new Map() };
  const play = () => {
    const seed = ownedByPass(given === undefined ? fill(root.shape, 1, root.dtype, root.device) : view(given));
    if (root.node !== null) return run(root.node, seed, pass);
    let isTaken = false;
    try {
      isTaken = accumulate(root, seed, pass);
      if (wanted === null) for (const hook of root.gradientHooks ?? []) hook();
    } finally {
      if (!isTaken) seed.dispose();
    }
  };
  withAutocast(null, () => (createGraph ? enableGrad : noGrad)(play));
}

function run(root: Node, seed: Tensor, pass: Pass): void {
  const { wanted, gradients } = pass;
  const nodes = inReverse(root);
  const needs = wanted && neededBy(nodes, wanted);
  gradients.set(root, seed);
  try {
    const through = needs ? nodes.filter((node) => needs.has(node)) : nodes;
    for (const node of through) {
      node.checkNotFreed();
      node.checkUnchanged();
    }
    const last = lastGivers(wanted ? [] : through);
    for (const node of through) {
      propagate(node, needs?.get(node) ?? node.inputs.map((input) => input !== null), pass);
      for (const input of last.size > 0 ? node.inputs : []) {
        if (last.get(input) === node && last.delete(input)) for (const hook of (input as Tensor).gradientHooks!) hook();
      }
    }
    for (const key of wanted?.keys() ?? []) {
      const end = gradients.get(key as Node);
      if (end !== undefined) wanted!.set(key, end);
      gradients.delete(key as Node);
    }
  } finally {
    for (const pending of gradients.values()) pending.dispose(); // what an error left over
  }
}

/** The inputs of each node through which the pass comes to what is wanted. */
function neededBy(nodes: readonly Node[], wanted: ReadonlyMap<Tensor | Node, unknown>): Map<Node, boolean[]> {
  const needs = new Map<Node, boolean[]>();
  // Earlier nodes first: what is wanted may lie behind them.
  for (const node of nodes.toReversed()) {
    const needed = node.inputs.map(
      (input) => input !== null && (wanted.has(input as Tensor | Node) || needs.has(input as Node)),
    );
    if (needed.includes(true)) needs.set(node, needed);
  }
  return needs;
}

/** Of each leaf that has hooks the last node that adds to its gradient. */
function lastGivers(nodes: readonly Node[]): Map<Node["inputs"][number], Node> {
  const last = new Map<Node["inputs"][number], Node>();
  for (const node of nodes)
    for (const input of node.inputs) if ((input as Tensor | null)?.gradientHooks) last.set(input, node);
  return last;
}

/** Takes the gradient of a node's output on to its inputs, and frees the node. */
function propagate(node: Node, needs: readonly boolean[], pass: Pass): void {
  const { createGraph, retainGraph, wanted, gradients } = pass;
  const outputGradient = gradients.get(node);
  if (outputGradient !== undefined) {
    node.restore();
    const { result: inputGradients } = collect("backward", () => {
      const saved = createGraph ? reconnected(node) : undefined;
      const run = () => node.backward(outputGradient, needs, saved);
      const { watcher } = watching;
      const computed = watcher === null ? run() : watcher.backward(node, run);
      let isTaken = wanted?.has(node) === true;
      return computed.map((g, i) => {
        if (createGraph && g !== null && needs[i] && node.flat.includes(i)) return flat(g, node.inputs[i]!);
        if (g !== outputGradient) return g;
        if (isTaken) return view(g);
        isTaken = true;
        return g;
      });
    });
    gradients.delete(node);
    if (wanted?.has(node)) wanted.set(node, outputGradient);
    else if (!inputGradients.includes(outputGradient)) outputGradient.dispose(); // before leaves take views of it: memory of their own is not copied
    handOn(node, needs, inputGradients, pass);
  }
  if (!retainGraph) node.free();
}

/** A gradient that depends on its input, but with the slope 0. */
function flat(gradient: Tensor, input: Tensor | Node): Tensor {
  const { shape, dtype, device } = gradient;
  const edges = [gradient.node ?? (gradient.requiresGrad ? gradient : null), input];
  const backward = (g: Tensor, _: unknown, needs: readonly boolean[]) => [
    needs[0] ? g : null,
    needs[1] ? fill(shape, 0, dtype, device) : null,
  ];
  const result = gradient.alias();
  result.attach(new TapeNode<Tensor>("flat", edges, [], [], backward, true));
  return result;
}

/** What a node saved, on the tape again: gradients by it go on to where it came from. */
function reconnected(node: Node): Tensor[] {
  return node.saved.map((held, i) => {
    const origin = node.origins[i]!;
    const maker = origin === node.inputs.length ? node : (node.inputs[origin] as Tensor | Node | null | undefined);
    if (!(maker instanceof TapeNode)) return maker ?? held;
    const again = held.alias();
    again.attach(maker.retain());
    return again;
  });
}

/** Takes a tensor out of its tidy and untracks it: the pass disposes of it, also after an error. */
function ownedByPass(tensor: Tensor): Tensor {
  untrack(tensor);
  return tensor;
}

/** Another tensor of the same memory, with the same gradient. */
const view = (x: Tensor) => reshape(x, x.shape);

function handOn(
  { inputs }: Node,
  needs: readonly boolean[],
  inputGradients: readonly (Tensor | null)[],
  pass: Pass,
): void {
  let i = 0;
  try {
    for (; i < inputs.length; i++) {
      const input = inputs[i] as Tensor | Node | null;
      const gradient = inputGradients[i];
      if (!gradient) continue;
      if (needs[i] && input instanceof TapeNode) add(pass.gradients, input, gradient);
      else {
        if (!needs[i] || !accumulate(input as Tensor, gradient, pass)) gradient.dispose();
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
  gradients.set(node, other === undefined ? gradient : ownedByPass(sumOf(other, gradient)));
  if (other !== undefined) {
    other.dispose();
    gradient.dispose();
  }
}

/**
 * leaf.grad += gradient, in place from the second time on; a gradient never shares memory with anything else, but for the tape that it is on.
 * True if the gradient itself has become the leaf's.
 */
function accumulate(leaf: Tensor, gradient: Tensor, { createGraph, wanted }: Pass): boolean {
  if (wanted !== null) {
    const other = wanted.get(leaf) ?? null;
    wanted.set(leaf, other === null ? gradient : ownedByPass(sumOf(other, gradient)));
    other?.dispose();
    return other === null;
  }
  if (!leaf.requiresGrad) return false; // frozen since the forward computation
  const { grad } = leaf;
  if (grad === null) {
    const isOurs = !createGraph && !gradient.storage.isShared;
    if (isOurs) track(gradient);
    leaf.receiveGradient(isOurs ? gradient : clone(gradient));
    return isOurs;
  }
  if (createGraph || grad.sparse || gradient.sparse) leaf.grad = sumOf(grad, gradient);
  else addInto(grad, gradient);
  return false;
}

function sumOf(a: Tensor, b: Tensor): Tensor {
  const sparse = a.sparse ?? b.sparse;
  if (sparse) return sparse.plus(a, b);
  if (a.dtype !== "c64") return elementwise("add", [a, b]);
  const sum = noGrad(() => clone(a));
  addInto(sum, b);
  return record("add", sum, [a, b], [], (g) => [g, g]);
}
