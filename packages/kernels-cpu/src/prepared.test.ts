/** Prepared launches run in one call; that must show in nothing but time. */
import type { Backend, Launch, Scalar, Slice } from "@opt/core/backend";
import { everyOp, unbuilt } from "@opt/testkit/built-rules";
import { describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";

const SIZE = 37;

function setUp() {
  const backend = openCpuBackend({ threads: 1 });
  const arrays = everyOp.buffers.map((_, b) => Float32Array.from({ length: SIZE }, (_, i) => Math.sin(i * (b + 1))));
  const slices = arrays.map((array) => sliceOf(backend, array));
  return { backend, arrays, slices };
}

function sliceOf(backend: Backend, array: Float32Array): Slice {
  return { memory: backend.wrap!(array), byteOffset: 0, length: array.length };
}

function ruleLaunch(backend: Backend, slices: readonly Slice[], scalars: readonly Scalar[], rule = everyOp) {
  const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32" });
  return { kind: "rule", kernel, tensors: [slices], scalars } satisfies Launch;
}

describe.skipIf(missingDevice)(`prepared launches${missingDevice ?? ""}`, () => {
  it.each([everyOp, unbuilt])("of $name take the scalars of each run", (rule) => {
    const [prepared, eager] = [setUp(), setUp()];
    const scalarsOf = (by: number) => rule.scalars.map((_, i) => by + i);
    const launchOn = ({ backend, slices }: typeof eager, by: number) =>
      ruleLaunch(backend, slices.slice(0, rule.buffers.length), scalarsOf(by), rule);
    const list = prepared.backend.prepare!([launchOn(prepared, 0.1), launchOn(prepared, 0.2)], []);
    for (const by of [0.2, 0.3, 0.7]) {
      list.run(new Map([[1, scalarsOf(by)]]), []);
      for (const one of [0.1, by]) eager.backend.launch(launchOn(eager, one));
    }
    expect(prepared.arrays).toEqual(eager.arrays);
    list.dispose();
  });

  it.each(["f32", "f64"] as const)("read %s scalars that are in memory when their turn comes", (dtype) => {
    const { backend } = setUp();
    const Numbers = dtype === "f32" ? Float32Array : Float64Array;
    const [input, factor] = [new Numbers([3]), new Numbers([0])];
    const all = everyOp.buffers.map(() => new Numbers(4).fill(0.5));
    const expected = all.map((array) => array.slice());
    const place = (array: Float32Array | Float64Array) =>
      ({ memory: backend.wrap!(array), byteOffset: 0, length: array.length }) satisfies Slice;
    const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype });
    const reduce = backend.kernel({ kind: "reduce", op: "sum", dtype });
    const by = place(factor);
    const list = backend.prepare!(
      [
        { kind: "reduce", kernel: reduce, input: place(input), output: by, outer: 1, length: 1, inner: 1 },
        { kind: "rule", kernel, tensors: [all.map(place)], scalars: [by, 2] },
      ],
      [],
    );
    for (const value of [3, 0.25]) {
      input[0] = value;
      list.run(new Map([[1, [by, 2]]]), []);
      backend.launch({ kind: "rule", kernel, tensors: [expected.map(place)], scalars: [value, 2] });
    }
    expect(all).toEqual(expected);
  });

  it("use other memory in each run where it is left open, also from another place on", () => {
    const [prepared, eager] = [setUp(), setUp()];
    const [first] = prepared.slices as [Slice];
    const fixed = prepared.slices.slice(1);
    const part = { ...first, byteOffset: 8, length: 5 };
    const launches = [
      ruleLaunch(prepared.backend, [part, ...fixed.map((slice) => ({ ...slice, length: 5 }))], [0.1, 2]),
      ruleLaunch(
        prepared.backend,
        [{ ...part, byteOffset: 16 }, ...fixed.map((slice) => ({ ...slice, length: 5 }))],
        [0.2, 2],
      ),
    ];
    const list = prepared.backend.prepare!(launches, [first.memory]);
    const others = [0, 1, 2].map((i) => Float32Array.from({ length: SIZE + 3 }, (_, at) => Math.cos(at + i)));
    for (const [i, other] of others.entries()) {
      const copy = other.slice();
      const moved = 4 * (i - 1); // bytes; from -4 on
      list.run(new Map(), [{ memory: prepared.backend.wrap!(other), byteOffset: moved }]);
      const memory = eager.backend.wrap!(copy);
      for (const [by, byteOffset] of [
        [0.1, 8],
        [0.2, 16],
      ] as const) {
        const slices = eager.slices.slice(1).map((slice) => ({ ...slice, length: 5 }));
        const here = { memory, byteOffset: byteOffset + moved, length: 5 };
        eager.backend.launch(ruleLaunch(eager.backend, [here, ...slices], [by, 2]));
      }
      expect(other).toEqual(copy);
      expect(other).not.toEqual(Float32Array.from(other, (_, at) => Math.cos(at + i)));
    }
    expect(prepared.arrays).toEqual(eager.arrays);
    list.dispose();
  });

  it("throw once an array of the caller's was transferred, and nothing has changed", () => {
    const { backend, arrays, slices } = setUp();
    const other = new Float32Array(SIZE);
    const launches = [
      ruleLaunch(backend, slices, [0.1, 2]),
      ruleLaunch(backend, [...slices.slice(0, -1), sliceOf(backend, other)], [0.1, 2]),
    ];
    const list = backend.prepare!(launches, []);
    list.run(new Map(), []);
    const before = arrays.map((array) => array.slice());
    structuredClone(other, { transfer: [other.buffer] });
    expect(() => list.run(new Map(), [])).toThrow(expect.objectContaining({ code: "DISPOSED" }));
    expect(arrays).toEqual(before);
  });
});
