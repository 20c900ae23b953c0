/** What must never reach native code becomes an OptError. */
import { fileURLToPath } from "node:url";
import type { Slice, TypedArray } from "@opt/core/backend";
import { expectCode } from "@opt/testkit";
import { everyOp, unbuilt } from "@opt/testkit/built-rules";
import { afterAll, describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";
import { loadAddon } from "./load-addon";

describe.skipIf(missingDevice)(`cpu rejections${missingDevice ?? ""}`, () => {
  const backend = missingDevice ? undefined! : openCpuBackend({ threads: 2 });
  afterAll(() => backend?.close());
  const sliceOf = (array: TypedArray): Slice => ({ memory: backend.wrap!(array), byteOffset: 0, length: array.length });
  const launchRule = (slices: readonly Slice[], scalars = [0.1, 2], rule = everyOp) => {
    const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32" });
    backend.launch({ kind: "rule", kernel, tensors: [slices], scalars });
  };
  const three = (length = 8) => [1, 2, 3].map((value) => sliceOf(new Float32Array(length).fill(value)));

  it("rejects buffers of different lengths", () => {
    const [param, grad] = three();
    expectCode("INTERNAL", () => launchRule([param!, grad!, sliceOf(new Float32Array(7))]));
  });

  it.each([[[0.1]], [[]], [[1, 2, 3]]])("rejects the scalars %j of a rule of two", (scalars) =>
    expectCode("INTERNAL", () => launchRule(three(), scalars)),
  );

  it("rejects a missing buffer, also of a rule that was not built", () => {
    expectCode("INTERNAL", () => launchRule(three().slice(1)));
    expectCode("INTERNAL", () => launchRule(three(), [1], unbuilt));
  });

  it("rejects slices that leave their memory or are not aligned to their elements", () => {
    const [param, grad, memory] = three();
    for (const bad of [{ byteOffset: 4 }, { byteOffset: -4 }, { byteOffset: 2, length: 4 }, { length: 2 ** 40 }]) {
      expectCode("INTERNAL", () => launchRule([{ ...param!, ...bad }, grad!, memory!]));
    }
  });

  it("rejects an array whose buffer was transferred away", () => {
    const array = new Float32Array(8);
    const [, grad, memory] = three();
    const param = sliceOf(array);
    structuredClone(array.buffer, { transfer: [array.buffer] });
    expectCode("DISPOSED", () => launchRule([param, grad!, memory!]));
    expectCode("DISPOSED", () => backend.readSync!(param.memory, 0, 4));
    expectCode("DISPOSED", () => backend.write(param.memory, 0, new Uint8Array(4)));
  });

  it("rejects an array whose buffer shrank", () => {
    const resizable = new (ArrayBuffer as unknown as new (bytes: number, options: object) => ArrayBuffer)(32, {
      maxByteLength: 64,
    });
    const param = sliceOf(new Float32Array(resizable, 0, 8));
    const [, grad, memory] = three();
    launchRule([param, grad!, memory!]);
    (resizable as unknown as { resize(bytes: number): void }).resize(16);
    expectCode("DISPOSED", () => launchRule([param, grad!, memory!]));
  });

  it("rejects memory that was freed, and memory of another device", () => {
    const [param, grad, memory] = three();
    backend.free(param!.memory);
    expectCode("DISPOSED", () => launchRule([param!, grad!, memory!]));
    expectCode("DEVICE_MISMATCH", () => launchRule([{ ...grad!, memory: { bytes: 32 } }, grad!, memory!]));
  });

  it("rejects reads and writes outside of memory", () => {
    const memory = backend.allocate(16);
    expectCode("INTERNAL", () => backend.readSync!(memory, 8, 9));
    expectCode("INTERNAL", () => backend.write(memory, -1, new Uint8Array(1)));
    backend.free(memory);
    expectCode("DISPOSED", () => backend.readSync!(memory, 0, 1));
  });

  it("rejects matrices that are shorter than their sizes say", () => {
    const kernel = backend.kernel({ kind: "matmul", transposeA: false, transposeB: false, dtype: "f32" });
    const [a, b, output] = three(4);
    const sizes = { batch: 1, m: 2, n: 2, k: 3, strideA: 6, strideB: 6 };
    expectCode("INTERNAL", () => backend.launch({ kind: "matmul", kernel, a: a!, b: b!, output: output!, ...sizes }));
  });

  it("says OUT_OF_MEMORY for what no machine has", () => expectCode("OUT_OF_MEMORY", () => backend.allocate(2 ** 52)));

  it("answers an invalid command with a status", () => {
    const addon = loadAddon();
    const nonsense = Float64Array.of(99, 1);
    expect(addon.run(0, addon.address(nonsense))).toBe(1);
    expect(addon.run(99, addon.address(nonsense))).toBe(1);
    expect((addon.run as (...args: unknown[]) => number)("x")).toBe(1);
  });

  it("does nothing for no tensors and for empty ones", () => {
    const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
    expect(() => launchRule(three(0))).not.toThrow();
    expect(() => backend.launch({ kind: "rule", kernel, tensors: [], scalars: [0.1, 2] })).not.toThrow();
  });

  it("reaches elements beyond 2^31 bytes", () => {
    const length = 2 ** 29 + 3;
    const array = new Float32Array(length);
    const kernel = backend.kernel({ kind: "copy", from: "f32", to: "f32" });
    const source = { ...sliceOf(Float32Array.of(1, 2, 3)) };
    const memory = backend.wrap!(array);
    const target = { memory, byteOffset: 2 ** 31, length: 3 };
    backend.launch({ kind: "copy", kernel, source, target, shape: [3], sourceStrides: [1], targetStrides: [1] });
    expect([...array.subarray(length - 4)]).toEqual([0, 1, 2, 3]);
    const sum = backend.kernel({ kind: "reduce", op: "sum", dtype: "f32" });
    const out = new Float32Array(1);
    backend.launch({
      kind: "reduce",
      kernel: sum,
      input: sliceOf(array),
      output: sliceOf(out),
      outer: 1,
      length,
      inner: 1,
    });
    expect(out[0]).toBe(6);
  });
});

describe("opening", () => {
  it("names the package that is missing, and what serves without it", () => {
    expectCode("DEVICE_UNAVAILABLE", () => loadAddon("plan9-mips", ""));
    expect(() => loadAddon("plan9-mips", "")).toThrow(/@opt\/kernels-cpu-plan9-mips.*not installed.*device "wasm"/);
  });

  it("says when a binary does not load", () =>
    expectCode("DEVICE_UNAVAILABLE", () => loadAddon("plan9-mips", fileURLToPath(import.meta.url))));

  it.skipIf(missingDevice)("rejects an instruction set that is not there, and an invalid number of threads", () => {
    expectCode("DEVICE_UNAVAILABLE", () => openCpuBackend({ instructionSet: "mmx" }));
    for (const threads of [0, -1, 1.5, Number.NaN, 257]) expectCode("BAD_ARGUMENT", () => openCpuBackend({ threads }));
  });
});
