/** Products with epilogues in prepared launches: their operands are memory of the launch like any other. */
import type { Program, Slice } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";

const buffer = (slot: number) => ({ op: "buffer", args: [], value: slot, uniform: false }) as const;
const sum: Program = {
  buffers: ["product", "bias"],
  scalars: [],
  nodes: [buffer(0), buffer(1), { op: "add", args: [0, 1], value: 0, uniform: false }],
  outputs: [{ slot: 0, node: 2 }],
};

describe.skipIf(missingDevice)(`prepared epilogues${missingDevice ?? ""}`, () => {
  function setUp(biasIsOpen: boolean) {
    const backend = openCpuBackend({ threads: 1 });
    const place = (array: Float32Array): Slice => ({
      memory: backend.wrap!(array),
      byteOffset: 0,
      length: array.length,
    });
    const [bias, output] = [Float32Array.of(5), Float32Array.of(0)];
    const [a, b, operand] = [Float32Array.of(1, 2), Float32Array.of(3, 4), bias].map(place) as [Slice, Slice, Slice];
    const kernel = backend.kernel({
      kind: "matmul",
      transposeA: false,
      transposeB: false,
      dtype: "f32",
      epilogue: sum,
    });
    const sizes = { batch: 1, m: 1, n: 1, k: 2, strideA: 0, strideB: 0 };
    const epilogue = { operands: [operand], strides: [[0, 0, 1]] as const, scalars: [] };
    const launch = { kind: "matmul", kernel, a, b, output: place(output), ...sizes, epilogue } as const;
    const prepared = backend.prepare!([launch], biasIsOpen ? [operand.memory] : []);
    const run = (...biases: Float32Array[]) =>
      prepared.run(
        new Map(),
        biases.map((array) => ({ memory: place(array).memory, byteOffset: 0 })),
      );
    return { bias, output, run };
  }

  it("read the operand of each run", () => {
    const { output, run } = setUp(true);
    for (const bias of [7, -2]) {
      run(Float32Array.of(bias));
      expect(output[0]).toBe(11 + bias);
    }
  });

  it("are rejected once an operand was transferred", () => {
    const { bias, output, run } = setUp(false);
    run();
    expect(output[0]).toBe(16);
    structuredClone(bias, { transfer: [bias.buffer] });
    expect(run).toThrow(expect.objectContaining({ code: "DISPOSED" }));
  });
});
