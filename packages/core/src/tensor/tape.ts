/** The tape: which ops are recorded, and how. Forward and backward of each op stand together in `ops/`; `engine.ts` plays it back. */

import { untrack } from "../device/scope";
import { shared } from "../host/shared";
import { checkBody, checkSynchronous } from "../host/synchronous";
import { type Backward as BackwardOf, TapeNode } from "./tape-node";
import type { Tensor } from "./tensor";

export type Backward = BackwardOf<Tensor>;

const mode = /* @__PURE__ */ shared("gradMode", () => ({ recording: true }));

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

/** Either, named in its refusals by `where`. */
export function recordingSetTo<Result>(where: string, on: boolean, body: () => Result): Result {
  checkBody(where, body);
  const before = mode.recording;
  mode.recording = on;
  try {
    const result = body();
    checkSynchronous(where, result);
    return result;
  } finally {
    mode.recording = before;
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
  if (!mode.recording || !inputs.some((input) => input.requiresGrad)) return output;
  const edges = inputs.map((input) => (input.requiresGrad ? (input.node ?? input) : null));
  const held = saved.map(hold);
  const origins = saved.map((tensor) => (tensor === output ? inputs.length : inputs.indexOf(tensor)));
  const node = new TapeNode(name, edges, held, origins, backward, output.storage === inputs[0]!.storage);
  output.attach(node);
  return output;
}

function hold(tensor: Tensor): Tensor {
  const held = tensor.alias();
  untrack(held); // the node frees it
  held.name = tensor.name;
  return held;
}
