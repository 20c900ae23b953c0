/** A rule launch on seeded numbers, for scripts that run in a process or thread of their own. */
import type { Backend } from "@opt/core/backend";
import { nadamRules } from "@opt/nadam";

const rule = nadamRules[0]!;

/** `steps` steps over `size` elements; returns the buffers. */
export function launchRule(backend: Backend, size: number, steps: number): Float32Array[] {
  const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32" });
  const buffers = rule.buffers.map((_, b) => Float32Array.from({ length: size }, (_, i) => Math.sin(i * (b + 1)) + 1));
  const scalars = rule.scalars.map((_, s) => 0.5 / (s + 1));
  const slices = buffers.map((array) => ({ memory: backend.wrap!(array), byteOffset: 0, length: size }));
  for (let step = 0; step < steps; step++) {
    backend.launch({ kind: "rule", kernel, tensors: [slices], scalars });
  }
  return buffers;
}
