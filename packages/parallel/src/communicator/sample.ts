/** A number for some elements of tensors that ranks have alike: too few to cost anything, others each time. */
import { hostBytes, span, type Tensor } from "@opt/core";
import { digest } from "./digest";

/** Of each tensor, in places that lie far from each other. */
const PLACES = 8;
const BYTES = 8;

/** @param turn moves the places. @returns undefined where a device answers only later */
export function sampleOf(tensors: readonly Tensor[], turn: number): string | undefined {
  const taken = new Uint8Array(tensors.length * PLACES * BYTES);
  let at = 0;
  for (const tensor of tensors) {
    const bytes = hostBytes(tensor, "read") ?? someBytes(tensor, turn);
    if (bytes === undefined) return undefined;
    const { length } = bytes;
    for (let place = 0; place < PLACES; place++) {
      const begin = Math.floor((length * place) / PLACES) + turn * BYTES;
      for (let i = 0; i < BYTES; i++) taken[at++] = length === 0 ? 0 : bytes[(begin + i) % length]!;
    }
  }
  return digest(taken);
}

/** Of memory that wasm has: a copy of one element, another each time. Devices of their own would have to stop for it. */
function someBytes(tensor: Tensor, turn: number): Uint8Array | undefined {
  if (!tensor.device.isHost) return undefined;
  const at = turn % Math.max(tensor.size, 1);
  const element = span(tensor, at, Math.min(at + 1, tensor.size));
  const bytes = element.bytesSync();
  element.dispose();
  return bytes;
}
