/** A rule launch on seeded numbers, for scripts that run in a process or thread of their own. */
import type { Backend } from "@opt/core/backend";
import { everyOp } from "@opt/testkit/built-rules";

/** `steps` steps over `size` elements; returns the buffers. */
export function launchRule(backend: Backend, size: number, steps: number): Float32Array[] {
  const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
  const buffers = everyOp.buffers.map((_, b) => Float32Array.from({ length: size }, (_, i) => Math.sin(i * (b + 1))));
  const slices = buffers.map((array) => ({ memory: backend.wrap!(array), byteOffset: 0, length: size }));
  for (let step = 0; step < steps; step++) {
    backend.launch({ kind: "rule", kernel, tensors: [slices], scalars: [0.01, 0.5] });
  }
  return buffers;
}
