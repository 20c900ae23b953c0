/** 100,000 launches, with fresh memory for each, leave the process as large as it was. */

import { everyOp } from "@opt/testkit/built-rules";
import { expect, it } from "vitest";
import { openCpuBackend } from "./backend";

it("does not grow over 100,000 steps", () => {
  const backend = openCpuBackend({ threads: 2 });
  const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
  const copy = backend.kernel({ kind: "copy", from: "f32", to: "f32" });
  const length = 20_000;
  const step = () => {
    const memories = everyOp.buffers.map(() => backend.allocate(length * 4));
    const slices = memories.map((memory) => ({ memory, byteOffset: 0, length }));
    const array = { memory: backend.wrap!(new Float32Array(4)), byteOffset: 0, length: 4 };
    backend.launch({
      kind: "copy",
      kernel: copy,
      source: array,
      target: { ...slices[0]!, length: 4 },
      shape: [4],
      sourceStrides: [1],
      targetStrides: [1],
    });
    backend.launch({ kind: "rule", kernel, tensors: [slices], scalars: [0.1, 2] });
    for (const memory of memories) backend.free(memory);
  };
  for (let i = 0; i < 10_000; i++) step();
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 100_000; i++) step();
  const grown = process.memoryUsage().rss - before;
  expect(grown).toBeLessThan(32 * 2 ** 20);
  backend.close();
});
