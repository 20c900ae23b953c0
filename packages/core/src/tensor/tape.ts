/** The tape: which ops are recorded, and how. Forward and backward of each op stand together in `ops/`; `autograd.ts` plays it back. */

import { untrack } from "../device/scope";
import { watching } from "../device/watcher";
import { shared } from "../host/shared";
import { checkBody, checkSynchronous } from "../host/synchronous";
import type { Generator } from "../random/generator";
import { type Backward as BackwardOf, type Recomputation, TapeNode } from "./tape-node";
import type { Tensor } from "./tensor";

export type Backward = BackwardOf<Tensor>;

const mode = /* @__PURE__ */ shared("gradMode", () => ({
  recording: true,
  recomputed: null as RecomputedForward | null,
}));

/** A forward computation that saves nothing: it runs again in backward. */
export interface RecomputedForward extends Recomputation {
  /** An op of its first or second run. */
  recorded(node: TapeNode<Tensor>, inputs: readonly Tensor[], saved: readonly Tensor[]): void;
  /** The draw of random numbers, the same in both runs. */
  drawn<Result>(generator: Generator, draw: () => Result): () => Result;
}

/** Runs `body` as part of `recomputed`. */
export function recordedBy<Result>(recomputed: RecomputedForward, body: () => Result): Result {
  const before = mode.recomputed;
  mode.recomputed = recomputed;
  try {
    return body();
  } finally {
    mode.recomputed = before;
  }
}

/** The recomputation that runs; null elsewhere. */
export const presentRecomputation = () => mode.recomputed;

/** True outside of noGrad. */
export function isTaping(): boolean {
  return mode.recording;
}

/** Runs `body` without recording: results do not require gradients. @throws OptError BAD_ARGUMENT if it is asynchronous */
export function noGrad<Result>(body: () => Result): Result {
  return recordingSetTo("noGrad", false, body);
}

/** Runs `body` with recording on, also inside noGrad (an optimizer's closure). @throws OptError BAD_ARGUMENT if it is asynchronous */
export function enableGrad<Result>(body: () => Result): Result {
  return recordingSetTo("enableGrad", true, body);
}

/** Either, named in its errors by `where`. */
export function recordingSetTo<Result>(where: string, on: boolean, body: () => Result): Result {
  checkBody(where, body);
  const result = whileRecordingIs(on, body);
  checkSynchronous(where, result);
  return result;
}

/** The same for a body that may go on later: what it does then is recorded as the program says. */
export function whileRecordingIs<Result>(on: boolean, body: () => Result): Result {
  const before = mode.recording;
  mode.recording = on;
  try {
    return body();
  } finally {
    mode.recording = before;
  }
}

/**
 * Records an op whose result is `output`, if one of its inputs requires a gradient and recording is on.
 * `saved` are the tensors that `backward` reads; they are held (without a copy) until the tape is freed.
 * `flat` are the places of the inputs whose gradient is piecewise constant: its own gradient by them is 0 rather than null, where PyTorch's is.
 */
export function record(
  name: string,
  output: Tensor,
  inputs: readonly Tensor[],
  saved: readonly Tensor[],
  backward: Backward,
  flat: readonly number[] = [],
): Tensor {
  if (!mode.recording || !inputs.some(needsGradient)) return output;
  for (const input of inputs) input.checkHistory(name);
  const edges = inputs.map(edgeOf);
  const { recomputed } = mode;
  const held = recomputed === null ? saved.map(hold) : [];
  const origins = saved.map((tensor) => (tensor === output ? inputs.length : inputs.indexOf(tensor)));
  const isView = output.storage === inputs[0]!.storage;
  const node = new TapeNode(name, edges, held, origins, backward, isView, recomputed, flat);
  recomputed?.recorded(node, inputs, saved);
  output.attach(node);
  watching.watcher?.recorded(node, output);
  return output;
}

/**
 * Records that `target` was overwritten with what was computed from `inputs`, of which it is the first. It is the op's result from now on.
 * Other tensors on its memory no longer know how their elements were computed: recording one of them throws BAD_STATE.
 */
export function recordWrite(name: string, target: Tensor, inputs: readonly Tensor[], backward: Backward): void {
  if (!mode.recording || !inputs.some(needsGradient)) return;
  for (const input of inputs) input.checkHistory(name);
  const { recomputed } = mode;
  const node = new TapeNode(name, inputs.map(edgeOf), [], [], backward, false, recomputed);
  recomputed?.recorded(node, inputs, []);
  target.rewrite(node);
  watching.watcher?.recorded(node, target);
}

const needsGradient = (input: Tensor) => input.requiresGrad;
const edgeOf = (input: Tensor) => input.node ?? (input.requiresGrad ? input : null);

/** The memory of a tensor for the tape, which frees it. */
export function hold(tensor: Tensor): Tensor {
  const held = tensor.alias();
  untrack(held); // the node frees it
  held.name = tensor.name;
  return held;
}
