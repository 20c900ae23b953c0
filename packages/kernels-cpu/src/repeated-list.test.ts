/** A list of tensors that comes again is copied from what was written before; that must show in nothing but time. */
import type { Rule } from "@opt/core/backend";
import { everyOp, unbuilt } from "@opt/testkit/built-rules";
import { describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";

function setUp(rule: Rule) {
  const backend = openCpuBackend({ threads: 1 });
  const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32" });
  const arrays = rule.buffers.map((_, b) => Float32Array.from({ length: 37 }, (_, i) => Math.sin(i * (b + 1))));
  const slices = arrays.map((array) => ({ memory: backend.wrap!(array), byteOffset: 0, length: array.length }));
  return { backend, kernel, arrays, slices, scalars: rule.scalars.map(() => 0.5) };
}

describe.skipIf(missingDevice)(`a list launched again${missingDevice ?? ""}`, () => {
  it.each([everyOp, unbuilt])("by $name gives the bits of new lists", (rule) => {
    const [again, anew] = [setUp(rule), setUp(rule)];
    const list = [again.slices];
    for (let step = 0; step < 4; step++) {
      again.backend.launch({ kind: "rule", kernel: again.kernel, tensors: list, scalars: again.scalars });
      anew.backend.launch({ kind: "rule", kernel: anew.kernel, tensors: [anew.slices], scalars: anew.scalars });
    }
    expect(again.arrays).toEqual(anew.arrays);
    expect(again.arrays).not.toEqual(setUp(rule).arrays);
  });

  it.each([1, 2, 3])("after %d launches is rejected once its memory is gone, and nothing has changed", (launches) => {
    const { backend, kernel, arrays, slices, scalars } = setUp(everyOp);
    const list = [slices];
    const launch = () => backend.launch({ kind: "rule", kernel, tensors: list, scalars });
    for (let i = 0; i < launches; i++) launch();
    const before = arrays.map((array) => array.slice());
    backend.free(slices[1]!.memory);
    expect(launch).toThrow(expect.objectContaining({ code: "DISPOSED" }));
    expect(arrays).toEqual(before);
  });

  it("for another kernel is written as that one reads it", () => {
    const { backend, arrays, slices, scalars } = setUp(everyOp);
    const expected = setUp(everyOp);
    const list = [slices];
    const interpreted: Rule = { ...everyOp, hash: "in no build" };
    for (const rule of [everyOp, everyOp, interpreted, interpreted, everyOp, everyOp]) {
      const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32" });
      backend.launch({ kind: "rule", kernel, tensors: list, scalars });
      expected.backend.launch({ kind: "rule", kernel: expected.kernel, tensors: [expected.slices], scalars });
    }
    expect(arrays).toEqual(expected.arrays);
  });
});
