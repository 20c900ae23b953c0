/** Numbers of tensors, seen where that costs nothing. */

import { beforeEachRun, inEachRun } from "../device/host-code";
import { overSamples } from "../tensor/batching";
import { decode } from "../tensor/read";
import type { Tensor } from "../tensor/tensor";
import { byteSize } from "../values/dtype";

type Look = (values: ArrayLike<number>) => void;
type LookAtAll = (values: ArrayLike<number>, ...others: ArrayLike<number>[]) => void;

function numbersOf(x: Tensor): ArrayLike<number> {
  const { device, size, dtype } = x;
  const { memory, byteOffset } = x.memorySlice();
  return decode({ size, dtype }, device.backend.readSync!(memory, byteOffset, size * byteSize(dtype)));
}

/** Shows an input on devices that share the host's memory: now, and before each replay of a compiled function that does not compute it. */
export function lookAtInput(x: Tensor, look: Look): void {
  if (overSamples<[Tensor, Look], unknown>(lookAtInput, x, look) !== undefined) return;
  if (x.device.backend.sharesMemory) beforeEachRun(x, (seen) => look(numbersOf(seen)));
}

/** Shows a result on devices that share the host's memory: now, and at this point of each replay. Others, beside it, likewise. */
export function lookAtResult(x: Tensor, look: LookAtAll, ...others: Tensor[]): void {
  if (overSamples<[Tensor, LookAtAll, ...Tensor[]], unknown>(lookAtResult, x, look, ...others) !== undefined) return;
  if (!x.device.backend.sharesMemory) return;
  inEachRun([x, ...others], (seen, ...beside) => look(numbersOf(seen), ...beside.map(numbersOf)));
}
