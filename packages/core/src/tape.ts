/** The tape: which ops are recorded, and how. Forward and backward of each op stand together in `ops/`; `engine.ts` plays it back. */
import { activeRecorder } from "./recorder";
import { keep } from "./scope";
import { type Backward as BackwardOf, TapeNode } from "./tape-node";
import type { Tensor } from "./tensor";

export type Backward = BackwardOf<Tensor>;

let recording = true;

/** True outside of noGrad. */
export function isTaping(): boolean {
  return recording;
}

/** Runs `body` without recording: results do not require gradients. */
export function noGrad<Result>(body: () => Result): Result {
  return recordingSetTo(false, body);
}

/** Runs `body` with recording on, also inside noGrad (an optimizer's closure). */
export function enableGrad<Result>(body: () => Result): Result {
  return recordingSetTo(true, body);
}

function recordingSetTo<Result>(on: boolean, body: () => Result): Result {
  const before = recording;
  recording = on;
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
  const held = saved.map(hold);
  const node = new TapeNode(name, edges, held, backward, output.storage === inputs[0]?.storage);
  output.attach(node);
  activeRecorder()?.taped(node.order);
  return output;
}

function hold(tensor: Tensor): Tensor {
  const held = keep(tensor.alias());
  held.name = tensor.name;
  return held;
}
