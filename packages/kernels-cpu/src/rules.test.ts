/**
 * Rules on every instruction set, with 1, 2 and 3 threads (by turns without OPT_TEST_ALL): no word differs from the interpreter's,
 * special values included.
 */
import { type Backend, type ComputeDType, interpretRule, type Rule, type TypedArray } from "@opt/core/backend";
import { seededBuffers, seededScalars, triesAll } from "@opt/testkit";
import { builtRules, unbuilt } from "@opt/testkit/built-rules";
import { afterAll, describe, expect, it, vi } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";
import { loadAddon } from "./load-addon";

/** 2 * 8192 + 5 elements: more parts than two threads, and a tail; the others are tails alone. */
const SIZES = [1, 16_389, 0, 17, 64];

const sets = missingDevice
  ? []
  : loadAddon()
      .instructionSets()
      .filter((name) => name !== null);
const devices = sets.flatMap((instructionSet) =>
  [1, 2, 3].map((threads) => ({
    label: `${instructionSet}, ${threads} threads`,
    backend: openCpuBackend({ instructionSet, threads }),
  })),
);

/** Runs a rule on copies of `tensors`, each one element into a larger buffer: arrays may lie anywhere. */
function run(backend: Backend, rule: Rule, dtype: ComputeDType, tensors: TypedArray[][], scalars: number[]) {
  const copies = tensors.map((buffers) =>
    buffers.map((array) => {
      const larger = dtype === "f64" ? new Float64Array(array.length + 1) : new Float32Array(array.length + 1);
      larger.set(array, 1);
      return larger.subarray(1);
    }),
  );
  const slices = copies.map((buffers) =>
    buffers.map((array) => ({ memory: backend.wrap!(array), byteOffset: 0, length: array.length })),
  );
  backend.launch({ kind: "rule", kernel: backend.kernel({ kind: "rule", rule, dtype }), tensors: slices, scalars });
  return copies;
}

describe.skipIf(missingDevice)(`cpu rules${missingDevice ?? ""}`, () => {
  afterAll(() => {
    for (const { backend } of devices) backend.close();
  });

  describe.each([...builtRules, unbuilt].map((rule, turn) => ({ ...rule, rule, turn })))("$name", ({ rule, turn }) => {
    const tried = devices.filter((_, d) => triesAll || d % 3 === (turn + Math.floor(d / 3)) % 3);
    it.each(["f32", "f64"] as const)("has the interpreter's bits in %s, whatever the set and the threads", (dtype) => {
      const tensors = SIZES.map((size, t) => seededBuffers(rule, { size, seed: 7 + t, dtype, specials: true }));
      const scalars = seededScalars(rule, 7);
      const expected = tensors.map((buffers) => buffers.map((array) => array.slice()));
      for (const buffers of expected) interpretRule(rule.program, dtype, buffers, scalars);
      for (const { label, backend } of tried) {
        run(backend, rule, dtype, tensors, scalars).forEach((buffers, t) => {
          buffers.forEach((array, b) => {
            expect(array, `${label}: ${rule.buffers[b]} of tensor ${t}`).toAgreeWith(expected[t]![b]!, "bits");
          });
        });
      }
    });
  });

  it("that were not built are noticed once", () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const rule: Rule = { ...unbuilt, name: "another", hash: "another" };
    devices[0]!.backend.kernel({ kind: "rule", rule, dtype: "f32" });
    devices[1]!.backend.kernel({ kind: "rule", rule, dtype: "f64" });
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]![0]).toContain('"another" was not compiled');
    warn.mockRestore();
  });
});
